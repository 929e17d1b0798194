package io.pgque.schema;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

import io.pgque.PgqueSchemaException;

/**
 * A release of the engine. A pre-release counts as its release.
 *
 * @param major the major number, within which older instances run on newer schemas
 * @param minor the minor number
 * @param patch the patch number
 */
record Release(int major, int minor, int patch) implements Comparable<Release> {

	private static final Pattern FORM = Pattern.compile("(\\d{1,9})\\.(\\d{1,9})\\.(\\d{1,9})(?:[-+].*)?");

	static Release parse(String text) {
		Matcher matcher = FORM.matcher(text);
		if (!matcher.matches()) {
			throw new PgqueSchemaException("The database's schema pgque says its release is '" + text + "'",
					"Check what pgque.version() is", null);
		}
		return new Release(Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2)),
				Integer.parseInt(matcher.group(3)));
	}

	@Override
	public int compareTo(Release other) {
		int major = Integer.compare(this.major, other.major);
		int minor = Integer.compare(this.minor, other.minor);
		return (major != 0) ? major : (minor != 0) ? minor : Integer.compare(this.patch, other.patch);
	}

	@Override
	public String toString() {
		return this.major + "." + this.minor + "." + this.patch;
	}

}
