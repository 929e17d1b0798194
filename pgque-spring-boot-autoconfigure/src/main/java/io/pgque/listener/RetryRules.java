package io.pgque.listener;

import java.util.HashSet;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * Which exceptions are worth a retry, where the default is wrong. A rule counts for the
 * class and all its subclasses, wherever in the chain of causes such an exception is. The
 * outermost exception with a rule decides, and the rule of the nearest class.
 *
 * @param includes exceptions that are always retried, even when they look hopeless, or
 * like an outage
 * @param excludes exceptions that are never retried: the message becomes a dead letter at
 * once
 * @since 0.1.0
 */
public record RetryRules(Set<Class<? extends Throwable>> includes, Set<Class<? extends Throwable>> excludes) {

	/**
	 * No rules.
	 */
	public static final RetryRules NONE = new RetryRules(Set.of(), Set.of());

	/**
	 * Create rules.
	 */
	public RetryRules {
		includes = Set.copyOf(includes);
		excludes = Set.copyOf(excludes);
		Set<Class<? extends Throwable>> both = new HashSet<>(includes);
		both.retainAll(excludes);
		Assert.isTrue(both.isEmpty(), () -> "Exceptions are to be always retried and never retried: " + both);
	}

	/**
	 * Tell what the rules say about a failure.
	 * @return whether to retry, {@code null} when no rule is about it
	 */
	@Nullable Boolean retry(Throwable failure) {
		for (Throwable cause : ExceptionClassifier.causes(failure)) {
			for (Class<?> type = cause.getClass(); type != null; type = type.getSuperclass()) {
				if (this.includes.contains(type)) {
					return true;
				}
				if (this.excludes.contains(type)) {
					return false;
				}
			}
		}
		return null;
	}

}
