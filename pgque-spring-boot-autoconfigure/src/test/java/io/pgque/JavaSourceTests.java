package io.pgque;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link JavaSource}.
 */
class JavaSourceTests {

	private final JavaSource source = new JavaSource("io/pgque/client/Example.java", """
			package io.pgque.client;

			/** Not "code". */
			class Example {
				String a = "x // no comment \\" /* nor this */"; // "comment"
				char quote = '"';
				String b = "select 1"
						+ " from pgque.queue";
				String c = ""\"
						select "q"
						\""";
			}
			""");

	@Test
	void codeHasStringsButNoComments() {
		assertThat(this.source.code()).contains("// no comment", "/* nor this */", "'\"'")
			.doesNotContain("Not", "\"comment\"");
		assertThat(this.source.codeLines()).isEqualTo(10);
	}

	@Test
	void literalsAreJoinedWhereTheCodeJoinsThem() {
		assertThat(this.source.literals()).contains("select 1 from pgque.queue", "select \"q\"")
			.doesNotContain("Not", "comment\"\n", "quote");
	}

	@Test
	void longLiteralsAreRead() {
		String block = "\"\"\"\n" + "line \\t \"quoted\" \n".repeat(10_000) + "\"\"\"";
		assertThat(new JavaSource("A.java", "String a = " + block + "; // comment").code())
			.isEqualTo("String a = " + block + "; ");
		String string = "\"" + "text \\\" ".repeat(10_000) + "\"";
		assertThat(new JavaSource("A.java", "String a = " + string + "; // comment").code())
			.isEqualTo("String a = " + string + "; ");
	}

	@Test
	void knowsItsPackage() {
		assertThat(this.source.folder()).isEqualTo("io/pgque/client");
		assertThat(this.source.isWithin("io.pgque.client")).isTrue();
		assertThat(this.source.isWithin("io.pgque.cli")).isFalse();
	}

}
