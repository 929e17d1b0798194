package io.pgque.core;

import io.pgque.InvalidMessageException;
import org.jspecify.annotations.Nullable;

import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.util.ConcurrentReferenceHashMap;
import org.springframework.util.StringUtils;

/**
 * What {@link PgqueEvent} says of classes. It is found on superclasses and interfaces,
 * and as a meta-annotation.
 *
 * @since 0.1.0
 */
public final class PgqueEvents {

	private static final ConcurrentReferenceHashMap<Class<?>, Stated> STATED = new ConcurrentReferenceHashMap<>();

	private PgqueEvents() {
	}

	/**
	 * Return the event type that a class states.
	 * @param eventClass the class
	 * @return the type, {@code null} when it states none
	 */
	static @Nullable String type(Class<?> eventClass) {
		return stated(eventClass).type();
	}

	/**
	 * Return the schema version of a class.
	 * @param eventClass the class
	 * @return the version
	 */
	static int version(Class<?> eventClass) {
		return stated(eventClass).version();
	}

	/**
	 * Return whether a class states a queue, so that its events can be published.
	 * @param eventClass the class
	 * @return whether it does
	 */
	public static boolean isPublished(Class<?> eventClass) {
		return stated(eventClass).queue() != null;
	}

	/**
	 * Return the queue that a class states.
	 * @param eventClass the class
	 * @return the queue name
	 * @throws InvalidMessageException when it states none
	 */
	static String queue(Class<?> eventClass) {
		String queue = stated(eventClass).queue();
		if (queue == null) {
			throw new InvalidMessageException(eventClass.getName() + " does not say which queue its events go to",
					"Annotate it with @PgqueEvent(queue = ...), or name the queue in the call", null);
		}
		return PgqueNames.requireQueue(queue);
	}

	private static Stated stated(Class<?> eventClass) {
		Stated known = STATED.get(eventClass);
		if (known == null) {
			known = read(eventClass);
			STATED.put(eventClass, known);
		}
		return known;
	}

	private static Stated read(Class<?> eventClass) {
		PgqueEvent annotation = AnnotatedElementUtils.findMergedAnnotation(eventClass, PgqueEvent.class);
		return (annotation != null)
				? new Stated(text(annotation.type()), text(annotation.queue()), annotation.version())
				: new Stated(null, null, 1);
	}

	private static @Nullable String text(String value) {
		return StringUtils.hasText(value) ? value : null;
	}

	private record Stated(@Nullable String type, @Nullable String queue, int version) {
	}

}
