package io.pgque;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * One source file, for rules that byte code can't tell.
 *
 * @param path path below the source folder, with forward slashes
 * @param text the whole file
 */
record JavaSource(String path, String text) {

	/**
	 * A comment, a text block, a string or a character. What begins first wins, hence a
	 * comment mark within a string is none. Possessive where it repeats alternatives: the
	 * stack would not hold a long text block otherwise.
	 */
	private static final Pattern TOKEN = Pattern.compile("//[^\\n]*|/\\*(?s:.*?)\\*/"
			+ "|(?<literal>\"\"\"(?s:[^\"\\\\]|\\\\.|\"(?!\"\"))*+\"\"\"|\"(?:\\\\.|[^\"\\\\\\n])*+\")|'(?:\\\\.|[^'\\\\\\n])++'");

	/**
	 * Read all source files below a folder of this module.
	 */
	static List<JavaSource> below(String folder) {
		Path root = Path.of(folder);
		if (!Files.isDirectory(root)) {
			return List.of();
		}
		try (Stream<Path> files = Files.walk(root)) {
			return files.filter((file) -> file.toString().endsWith(".java"))
				.map((file) -> read(root, file))
				.sorted((left, right) -> left.path().compareTo(right.path()))
				.toList();
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

	private static JavaSource read(Path root, Path file) {
		try {
			return new JavaSource(root.relativize(file).toString().replace('\\', '/'), Files.readString(file));
		}
		catch (IOException ex) {
			throw new UncheckedIOException(ex);
		}
	}

	/**
	 * Return the folder, such as {@code io/pgque/client}.
	 */
	String folder() {
		return this.path.substring(0, this.path.lastIndexOf('/'));
	}

	boolean isPackageInfo() {
		return this.path.endsWith("/package-info.java");
	}

	/**
	 * Return whether the file lies in a package or below it.
	 */
	boolean isWithin(String packageName) {
		return this.path.startsWith(packageName.replace('.', '/') + "/");
	}

	/**
	 * Return the text without comments.
	 */
	String code() {
		return TOKEN.matcher(this.text)
			.replaceAll((match) -> match.group().startsWith("/") ? "" : Matcher.quoteReplacement(match.group()));
	}

	/**
	 * Return all string literals and text blocks, one a line. What + joins is one
	 * literal.
	 */
	String literals() {
		StringBuilder literals = new StringBuilder();
		Matcher matcher = TOKEN.matcher(this.text);
		int end = 0;
		while (matcher.find()) {
			if (matcher.group("literal") != null) {
				boolean joined = this.text.substring(end, matcher.start()).strip().equals("+");
				literals.append(joined ? "" : "\n").append(matcher.group().replaceAll("^\"+|\"+$", ""));
				end = matcher.end();
			}
		}
		return literals.toString();
	}

	/**
	 * Return how many lines there are, comments and blank ones aside.
	 */
	long codeLines() {
		return code().lines().filter((line) -> !line.isBlank()).count();
	}

	@Override
	public String toString() {
		return this.path;
	}

}
