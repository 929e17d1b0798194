package io.pgque.listener;

import java.sql.SQLException;
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
import org.springframework.transaction.TransactionSystemException;

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
		List<Throwable> causes = causes(failure);
		return causes.stream()
			.anyMatch((cause) -> isAny(INFRASTRUCTURE, cause) && !(cause instanceof ConcurrencyFailureException)
					|| isEndOfConnection(cause))
				&& causes.stream().noneMatch(ExceptionClassifier::exceedsLimitOfItsOwn);
	}

	/**
	 * A commit or rollback that fails without a state of the server: the pool had to
	 * close the connection, and what closed it may be nowhere among the causes.
	 */
	private static boolean isEndOfConnection(Throwable cause) {
		return cause instanceof TransactionSystemException && cause.getCause() instanceof SQLException sql
				&& (sql.getSQLState() == null || sql.getSQLState().startsWith("08"));
	}

	/**
	 * Class 54, "program limit exceeded": something of this message is too large.
	 */
	private static boolean exceedsLimitOfItsOwn(Throwable cause) {
		return cause instanceof SQLException sql && sql.getSQLState() != null && sql.getSQLState().startsWith("54");
	}

	static <T extends Throwable> @Nullable T find(Throwable failure, Class<T> type) {
		return causes(failure).stream().filter(type::isInstance).map(type::cast).findFirst().orElse(null);
	}

	/**
	 * The failure and its causes, outermost first; ends where the chain bites its tail.
	 * When the end of a transaction fails, what the handler had thrown is a cause too.
	 */
	static List<Throwable> causes(Throwable failure) {
		Set<Throwable> causes = Collections.newSetFromMap(new IdentityHashMap<>());
		List<Throwable> ordered = new ArrayList<>();
		collect(failure, causes, ordered);
		return ordered;
	}

	private static void collect(@Nullable Throwable failure, Set<Throwable> seen, List<Throwable> ordered) {
		for (Throwable cause = failure; cause != null && seen.add(cause); cause = cause.getCause()) {
			ordered.add(cause);
			if (cause instanceof TransactionSystemException end) {
				collect(end.getApplicationException(), seen, ordered);
			}
		}
	}

	private static boolean isAny(List<Class<? extends Throwable>> types, Throwable failure) {
		return types.stream().anyMatch((type) -> type.isInstance(failure));
	}

}
