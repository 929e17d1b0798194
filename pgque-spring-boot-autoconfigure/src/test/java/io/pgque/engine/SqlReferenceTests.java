package io.pgque.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;

import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * The reference of SQL functions in docs is what the comments of the migrations and the
 * catalog say. {@code -Dpgque.reference.write=true} writes it anew.
 */
@PgqueDatabase
class SqlReferenceTests {

	private static final Path REFERENCE = Path.of("..", "docs", "sql-reference.md");

	private static final Path MIGRATIONS = Path.of("src/main/resources/io/pgque/schema/log");

	private static final Pattern FUNCTION = Pattern
		.compile("create (?:or replace )?(?:function|procedure) (pgque)\\.(\\w+)\\(.*");

	/**
	 * In the order in which they were made, which is that of the files.
	 */
	private static final String CATALOG = """
			select p.proname::text as name, p.prokind::text as kind,
			       pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result,
			       concat_ws(', ', case when has_function_privilege('pgque_reader', p.oid, 'execute') then 'pgque_reader' end,
			           case when has_function_privilege('pgque_writer', p.oid, 'execute') then 'pgque_writer' end,
			           case when has_function_privilege('pgque_admin', p.oid, 'execute') then 'pgque_admin' end) as roles
			from pg_catalog.pg_proc p
			where p.pronamespace = 'pgque'::regnamespace
			order by p.oid""";

	@Test
	void referenceIsUpToDate(TestDatabase database) throws IOException {
		String reference = write(database.query(CATALOG));
		if (Boolean.getBoolean("pgque.reference.write")) {
			Files.writeString(REFERENCE, reference);
		}
		assertThat(Files.readString(REFERENCE))
			.as("docs/sql-reference.md; run this test with -Dpgque.reference.write=true")
			.isEqualTo(reference);
	}

	private static String write(List<Map<String, Object>> catalog) throws IOException {
		List<Map<String, Object>> functions = new ArrayList<>(catalog);
		StringBuilder text = new StringBuilder(
				"""
						# SQL reference

						The public functions of schema `pgque`, by topic. Roles named are those that may call a function; where \
						none is named, only the owner may. `pgque_admin` is a member of both others.
						""");
		for (Path file : files()) {
			StringBuilder topic = new StringBuilder();
			List<String> lines = Files.readAllLines(file);
			for (int i = 0; i < lines.size(); i++) {
				Matcher function = FUNCTION.matcher(lines.get(i));
				if (function.matches()) {
					Map<String, Object> row = functions.remove(0);
					assertThat(row.get("name")).as("function at line %d of %s", i + 1, file)
						.isEqualTo(function.group(2));
					describe(row, commentBefore(lines, i), topic);
				}
			}
			if (!topic.isEmpty()) {
				heading(lines, text);
				text.append(topic);
			}
		}
		assertThat(functions).as("functions that no file makes").isEmpty();
		return text.toString();
	}

	private static List<Path> files() throws IOException {
		try (Stream<Path> paths = Files.list(MIGRATIONS)) {
			List<Path> sorted = paths.sorted().toList();
			return Stream
				.concat(sorted.stream().filter((path) -> path.getFileName().toString().startsWith("V")),
						sorted.stream().filter((path) -> path.getFileName().toString().startsWith("R")))
				.toList();
		}
	}

	private static void heading(List<String> lines, StringBuilder text) {
		List<String> comment = lines.stream()
			.takeWhile((line) -> line.startsWith("--"))
			.map(SqlReferenceTests::strip)
			.toList();
		int end = comment.indexOf("");
		String sentence = String.join(" ", comment.subList(0, end));
		int colon = sentence.indexOf(':');
		int stop = sentence.indexOf('.');
		int cut = (colon >= 0 && (stop < 0 || colon < stop)) ? colon : stop;
		text.append("\n## ").append(sentence, 0, cut).append("\n\n");
		comment.subList(end, comment.size())
			.stream()
			.filter((line) -> line.startsWith("  "))
			.map((line) -> line.startsWith("  * ") ? "- " + line.substring(4) : line.substring(2))
			.forEach((line) -> text.append(line).append('\n'));
	}

	private static void describe(Map<String, Object> function, List<String> comment, StringBuilder text) {
		boolean procedure = "p".equals(function.get("kind"));
		text.append("\n### `").append(function.get("name")).append('(').append(function.get("arguments")).append(")`");
		if (!procedure) {
			text.append(" → `").append(function.get("result")).append('`');
		}
		String roles = (String) function.get("roles");
		text.append("\n\n").append(procedure ? "Procedure. " : "");
		text.append(roles.isEmpty() ? "For the owner only." : "Roles: " + roles + ".").append("\n\n");
		List<String> prose = comment.stream().takeWhile((line) -> !line.startsWith("  ")).toList();
		text.append(String.join("\n", prose)).append('\n');
		if (prose.size() < comment.size()) {
			text.append("\n```text\n");
			comment.subList(prose.size(), comment.size())
				.forEach((line) -> text.append(line.startsWith("  ") ? line.substring(2) : line).append('\n'));
			text.append("```\n");
		}
	}

	private static List<String> commentBefore(List<String> lines, int function) {
		int first = function;
		while (first > 0 && lines.get(first - 1).startsWith("--")) {
			first--;
		}
		return lines.subList(first, function).stream().map(SqlReferenceTests::strip).toList();
	}

	private static String strip(String line) {
		return line.replaceFirst("^-- ?", "");
	}

}
