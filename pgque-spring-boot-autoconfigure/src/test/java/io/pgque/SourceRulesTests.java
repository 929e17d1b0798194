package io.pgque;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Rules of style that byte code can't tell.
 */
class SourceRulesTests {

	private static final int MAX_CODE_LINES = 400;

	private static final Pattern ENGINE_CALL = Pattern.compile("\\b(select|from|join|into|update|call)\\s+pgque\\.",
			Pattern.CASE_INSENSITIVE);

	// Not roles: the message about a missing one shows the statement that makes it.
	private static final Pattern DDL = Pattern.compile(
			"\\b(create(\\s+or\\s+replace)?|alter|drop|truncate)(\\s+(unique|unlogged|temp|temporary|materialized|event))?"
					+ "\\s+(table|index|schema|function|procedure|view|type|trigger|sequence|domain|policy)\\b",
			Pattern.CASE_INSENSITIVE);

	private static final Pattern PUBLIC_TYPE = Pattern
		.compile("^public (\\w+ |non-sealed )*(class|interface|record|enum|@interface) ", Pattern.MULTILINE);

	private static final Pattern DOCUMENTED_PUBLIC_TYPE = Pattern.compile(
			"/\\*\\*(?:(?!\\*/)[\\s\\S])*@since \\d+\\.\\d+\\.\\d+(?:(?!\\*/)[\\s\\S])*\\*/\\s+(?:@[\\s\\S]*?)?^public ",
			Pattern.MULTILINE);

	private static final Pattern FORBIDDEN_IN_TESTS = Pattern
		.compile("Thread\\.sleep\\(|TimeUnit\\.\\w+\\.sleep\\(|@Disabled\\b");

	private final List<JavaSource> sources = JavaSource.below("src/main/java");

	@Test
	void engineIsCalledByTheClientOnly() {
		assertThat(this.sources).filteredOn(outside("io.pgque.client", "io.pgque.schema", "io.pgque.work"))
			.filteredOn((source) -> ENGINE_CALL.matcher(source.literals()).find())
			.isEmpty();
	}

	@Test
	void objectsAreDefinedByMigrationsOnly() throws IOException {
		assertThat(this.sources).filteredOn((source) -> DDL.matcher(source.literals()).find()).isEmpty();
		try (Stream<Path> files = Files.walk(Path.of("src"))) {
			assertThat(files.map((file) -> file.toString().replace('\\', '/')))
				.filteredOn((file) -> file.endsWith(".sql") && !file.startsWith("src/test/"))
				.allMatch((file) -> file.startsWith("src/main/resources/io/pgque/schema/"));
		}
	}

	@Test
	void classesAreSmall() {
		assertThat(this.sources).filteredOn((source) -> source.codeLines() > MAX_CODE_LINES).isEmpty();
	}

	@Test
	void packagesAreNullMarkedAndDocumented() {
		Set<String> marked = this.sources.stream()
			.filter(JavaSource::isPackageInfo)
			.filter((source) -> source.text().startsWith("/**") && source.code().contains("@NullMarked"))
			.map(JavaSource::folder)
			.collect(Collectors.toSet());
		assertThat(marked).containsAll(this.sources.stream().map(JavaSource::folder).toList());
	}

	@Test
	void publicTypesSayWhatTheyAreAndSinceWhen() {
		assertThat(this.sources).filteredOn((source) -> PUBLIC_TYPE.matcher(source.text()).find())
			.filteredOn((source) -> !DOCUMENTED_PUBLIC_TYPE.matcher(source.text()).find())
			.isEmpty();
	}

	@Test
	void nothingIsPrinted() {
		assertThat(this.sources)
			.filteredOn((source) -> source.code().contains("System.out.") || source.code().contains("System.err.")
					|| source.code().contains(".printStackTrace("))
			.isEmpty();
	}

	@Test
	void testsWaitForConditionsAndAllRun() {
		assertThat(JavaSource.below("src/test/java"))
			.filteredOn((source) -> !source.path().endsWith("SourceRulesTests.java"))
			.filteredOn((source) -> FORBIDDEN_IN_TESTS.matcher(source.code()).find())
			.isEmpty();
	}

	private static Predicate<JavaSource> outside(String... packages) {
		return (source) -> Stream.of(packages).noneMatch(source::isWithin);
	}

}
