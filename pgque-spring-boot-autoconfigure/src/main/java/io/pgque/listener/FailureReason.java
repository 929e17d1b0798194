package io.pgque.listener;

import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * Puts a failure into the text that is stored with a nack.
 */
final class FailureReason {

	static final int MAX_LENGTH = 1000;

	private FailureReason() {
	}

	static String of(Exception failure) {
		RejectMessageException reject = ExceptionClassifier.find(failure, RejectMessageException.class);
		if (reject != null) {
			return storable(reject.getReason());
		}
		List<Throwable> causes = ExceptionClassifier.causes(failure);
		Throwable root = causes.get(causes.size() - 1);
		String text = describe(failure);
		String rootText = describe(root);
		// Wrappers tend to repeat the text of what they wrap.
		return storable((text.contains(rootText)) ? text : text + "; caused by " + rootText);
	}

	private static String describe(Throwable failure) {
		String message = messageOf(failure);
		return failure.getClass().getName() + ((message != null) ? ": " + message : "");
	}

	private static @Nullable String messageOf(Throwable failure) {
		try {
			return failure.getMessage();
		}
		catch (RuntimeException ex) {
			return "(its message failed with " + ex.getClass().getName() + ")";
		}
	}

	/**
	 * PostgreSQL's text takes neither NUL nor half a surrogate pair.
	 */
	static String storable(String text) {
		StringBuilder result = new StringBuilder(Math.min(text.length(), MAX_LENGTH));
		for (int i = 0; i < text.length() && result.length() < MAX_LENGTH; i++) {
			char c = text.charAt(i);
			if (Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1))) {
				result.append(c).append(text.charAt(++i));
			}
			else if (Character.isSurrogate(c)) {
				result.append('\uFFFD');
			}
			else if (c != 0) {
				result.append(c);
			}
		}
		return result.toString();
	}

}
