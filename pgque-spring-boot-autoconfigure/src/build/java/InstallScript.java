import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Writes one plain script out of the migrations, in the order in which Flyway runs them,
 * for those who install with psql. A build step: run by Maven from this source file.
 */
class InstallScript {

	private static final Pattern VERSIONED = Pattern.compile("V(\\d+)__\\w+\\.sql");

	private static final Pattern REPEATABLE = Pattern.compile("R__(\\w+)\\.sql");

	public static void main(String[] args) throws IOException {
		Path migrations = Path.of(args[0]);
		Path target = Path.of(args[1]);
		StringBuilder script = new StringBuilder("""
				-- Installs the schema pgque: the migrations of the Java library as one script.
				-- Run once on a fresh database, as a role that may create roles:  psql -f pgque-install.sql
				-- All or nothing: an error leaves the database as it was.
				\\set ON_ERROR_STOP on
				begin;
				create schema if not exists pgque;
				""");
		for (Path file : inOrder(migrations)) {
			script.append("\n-- ").append(file.getFileName()).append("\n\n");
			script.append(Files.readString(file).replace("\r\n", "\n").stripTrailing()).append('\n');
		}
		script.append("\ncommit;\n");
		Files.createDirectories(target.getParent());
		Files.writeString(target, script);
	}

	private static List<Path> inOrder(Path migrations) throws IOException {
		List<Path> versioned = new ArrayList<>();
		List<Path> repeatable = new ArrayList<>();
		if (Files.isDirectory(migrations)) {
			try (Stream<Path> files = Files.list(migrations)) {
				for (Path file : files.filter((file) -> file.toString().endsWith(".sql")).toList()) {
					String name = file.getFileName().toString();
					if (VERSIONED.matcher(name).matches()) {
						versioned.add(file);
					}
					else if (REPEATABLE.matcher(name).matches()) {
						repeatable.add(file);
					}
					else {
						throw new IllegalArgumentException("Neither V<number>__<name>.sql nor R__<name>.sql: " + file);
					}
				}
			}
		}
		versioned.sort(Comparator.comparingInt(InstallScript::version));
		repeatable.sort(Comparator.comparing((file) -> file.getFileName().toString()));
		versioned.addAll(repeatable);
		return versioned;
	}

	private static int version(Path file) {
		Matcher matcher = VERSIONED.matcher(file.getFileName().toString());
		if (!matcher.matches()) {
			throw new IllegalArgumentException("No version: " + file);
		}
		return Integer.parseInt(matcher.group(1));
	}

}
