package io.pgque.engine;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Rules of style for the migrations.
 */
@PgqueDatabase
class SqlStyleTests {

	private static final Pattern FUNCTION = Pattern
		.compile("^create (?:or replace )?(?:function|procedure) (pgque\\w*\\.\\w+)\\(", Pattern.MULTILINE);

	private final Map<String, String> files = read();

	@Test
	void filesAreNamedByNumberAndTopic() {
		assertThat(this.files.keySet()).isNotEmpty()
			.allMatch((name) -> name.matches("(V\\d+|R__\\d\\d)_+[a-z_]+\\.sql"));
	}

	@Test
	void filesSayWhatTheyGuarantee() {
		assertThat(this.files).allSatisfy((name, text) -> {
			String comment = commentAt(text.lines().toList(), 0);
			assertThat(comment).contains("-- What this topic guarantees", "--   * ");
		});
	}

	@Test
	void filesHaveNoPlaceholdersTabsOrLooseEnds() {
		assertThat(this.files).allSatisfy(
				(name, text) -> assertThat(text).doesNotContain("${", "\t", " \n", "TODO", "FIXME").endsWith(";\n"));
	}

	@Test
	void everyFunctionIsExplained() {
		List<String> silent = new ArrayList<>();
		this.files.forEach((name, text) -> {
			List<String> lines = text.lines().toList();
			for (int i = 0; i < lines.size(); i++) {
				Matcher function = FUNCTION.matcher(lines.get(i));
				if (function.find() && (i == 0 || !lines.get(i - 1).startsWith("-- "))) {
					silent.add(function.group(1));
				}
			}
		});
		// The one that a heading explains.
		silent.remove("pgque_internal.subscription_write");
		assertThat(silent).isEmpty();
	}

	@Test
	void everyFunctionOfTheSchemaIsInTheFiles(TestDatabase database) {
		Set<String> written = new TreeSet<>();
		this.files.values().forEach((text) -> {
			Matcher function = FUNCTION.matcher(text);
			while (function.find()) {
				written.add(function.group(1));
			}
		});
		assertThat(new TreeSet<>(database.values(String.class,
				"select n.nspname || '.' || p.proname from pg_catalog.pg_proc p"
						+ " join pg_catalog.pg_namespace n on n.oid = p.pronamespace where n.nspname like 'pgque%'")))
			.isEqualTo(written);
	}

	@Test
	void keywordsAreLowerCase() {
		assertThat(this.files).allSatisfy((name, text) -> assertThat(withoutCommentsAndStrings(text))
			.doesNotContainPattern("\\b(SELECT|FROM|WHERE|INSERT|UPDATE|DELETE|CREATE|FUNCTION|BEGIN|END|RETURN)\\b"));
	}

	private static String commentAt(List<String> lines, int first) {
		return String.join("\n",
				lines.subList(first, lines.size()).stream().takeWhile((line) -> line.startsWith("--")).toList());
	}

	private static String withoutCommentsAndStrings(String text) {
		return text.replaceAll("--[^\n]*", "").replaceAll("'[^']*'", "''");
	}

	private static Map<String, String> read() {
		try (Stream<Path> paths = Files.list(Path.of("src/main/resources/io/pgque/schema/log"))) {
			Map<String, String> files = new TreeMap<>();
			for (Path path : paths.toList()) {
				files.put(path.getFileName().toString(), Files.readString(path));
			}
			return files;
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

}
