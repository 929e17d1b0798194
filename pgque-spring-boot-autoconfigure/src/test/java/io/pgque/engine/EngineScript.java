package io.pgque.engine;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * The script that installs the engine without a migration tool.
 */
final class EngineScript {

	private EngineScript() {
	}

	/**
	 * Return the script's statements, without what is for psql only.
	 */
	static String statements() {
		try (InputStream script = EngineScript.class.getResourceAsStream("/io/pgque/schema/pgque-install.sql")) {
			return new String(script.readAllBytes(), StandardCharsets.UTF_8).replace("\\set ON_ERROR_STOP on\n", "");
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

}
