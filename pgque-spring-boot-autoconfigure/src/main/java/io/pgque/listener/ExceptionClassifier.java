package io.pgque.listener;

import java.sql.SQLNonTransientConnectionException;
import java.sql.SQLRecoverableException;
import java.sql.SQLTransientConnectionException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import org.springframework.dao.ConcurrencyFailureException;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.dao.RecoverableDataAccessException;
import org.springframework.dao.TransientDataAccessException;
import org.springframework.messaging.converter.MessageConversionException;
import org.springframework.messaging.handler.annotation.support.MethodArgumentNotValidException;
import org.springframework.messaging.handler.invocation.MethodArgumentResolutionException;
import org.springframework.transaction.CannotCreateTransactionException;

/**
 * Tells from an exception and its causes whose fault a failure is: the message's own, for
 * good ({@link #isHopeless}), that of something every message needs
 * ({@link #isInfrastructure}), or neither.
 */
final class ExceptionClassifier {

	private static final List<Class<? extends Throwable>> HOPELESS = List.of(MessageConversionException.class,
			MethodArgumentResolutionException.class, MethodArgumentNotValidException.class, ClassCastException.class,
			NoSuchMethodException.class);

	private static final List<Class<? extends Throwable>> INFRASTRUCTURE = List.of(
			// no connection to be had, or lost in the middle
			DataAccessResourceFailureException.class, CannotCreateTransactionException.class,
			SQLTransientConnectionException.class, SQLNonTransientConnectionException.class,
			SQLRecoverableException.class, RecoverableDataAccessException.class,
			// timeouts and exhausted resources
			TransientDataAccessException.class);

	private ExceptionClassifier() {
	}

	static boolean isHopeless(Throwable failure) {
		return causes(failure).stream().anyMatch((cause) -> isAny(HOPELESS, cause));
	}

	static boolean isInfrastructure(Throwable failure) {
		// A deadlock or a stale version is transient for Spring, but it is a matter of
		// this message: to wait for better times would block the consumer for ever.
		return causes(failure).stream()
			.anyMatch((cause) -> isAny(INFRASTRUCTURE, cause) && !(cause instanceof ConcurrencyFailureException));
	}

	static <T extends Throwable> @Nullable T find(Throwable failure, Class<T> type) {
		return causes(failure).stream().filter(type::isInstance).map(type::cast).findFirst().orElse(null);
	}

	/**
	 * The failure and its causes, outermost first; ends where the chain bites its tail.
	 */
	static List<Throwable> causes(Throwable failure) {
		Set<Throwable> seen = Collections.newSetFromMap(new IdentityHashMap<>());
		List<Throwable> causes = new ArrayList<>();
		for (Throwable cause = failure; cause != null && seen.add(cause); cause = cause.getCause()) {
			causes.add(cause);
		}
		return causes;
	}

	private static boolean isAny(List<Class<? extends Throwable>> types, Throwable failure) {
		return types.stream().anyMatch((type) -> type.isInstance(failure));
	}

}
