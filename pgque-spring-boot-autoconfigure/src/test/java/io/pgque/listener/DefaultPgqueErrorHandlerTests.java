package io.pgque.listener;

import java.io.IOException;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

import io.pgque.core.PgqueMessage;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import org.springframework.dao.CannotAcquireLockException;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.dao.QueryTimeoutException;
import org.springframework.dao.TransientDataAccessResourceException;
import org.springframework.jdbc.CannotGetJdbcConnectionException;
import org.springframework.messaging.converter.MessageConversionException;
import org.springframework.transaction.CannotCreateTransactionException;
import org.springframework.transaction.TransactionSystemException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/**
 * Tests for {@link DefaultPgqueErrorHandler} and {@link FailureReason}.
 */
class DefaultPgqueErrorHandlerTests {

	private final DefaultPgqueErrorHandler handler = new DefaultPgqueErrorHandler();

	static Stream<Exception> infrastructure() {
		return Stream.of(new CannotGetJdbcConnectionException("none"), new QueryTimeoutException("late"),
				new TransientDataAccessResourceException("full"), new CannotCreateTransactionException("none"),
				new SQLTransientConnectionException("pool"), rollbackOnDeadConnection(),
				new TransactionSystemException("commit", new SQLException("Connection is closed")));
	}

	/**
	 * What a transactional handler throws whose connection was lost.
	 */
	private static Exception rollbackOnDeadConnection() {
		TransactionSystemException failure = new TransactionSystemException("rollback",
				new IllegalStateException("no SQLException to tell by"));
		failure.initApplicationException(new DataAccessResourceFailureException("terminated"));
		return failure;
	}

	static Stream<Exception> hopeless() {
		return Stream.of(new MessageConversionException("no JSON"), new ClassCastException(),
				new NoSuchMethodException());
	}

	static Stream<Exception> ordinary() {
		return Stream.of(new IllegalStateException("declined"), new DataIntegrityViolationException("duplicate"),
				new DataAccessResourceFailureException("index row", new SQLException("too large", "54000")),
				new TransactionSystemException("commit", new SQLException("deferred constraint", "23503")),
				new OptimisticLockingFailureException("stale"), new CannotAcquireLockException("deadlock"));
	}

	@ParameterizedTest
	@MethodSource("infrastructure")
	void infrastructureFailureAbortsTheBatch(Exception failure) {
		FailureAction expected = FailureAction.abortBatch(Duration.ofSeconds(5));
		assertThat(decide(failure, null)).isEqualTo(expected);
		assertThat(decide(new IllegalStateException(new RuntimeException(failure)), 3)).isEqualTo(expected);
	}

	@ParameterizedTest
	@MethodSource("hopeless")
	void hopelessFailureIsDeadAtOnce(Exception failure) {
		assertThat(decide(failure, null)).isEqualTo(FailureAction.deadLetter());
		assertThat(decide(new IllegalStateException(new RuntimeException(failure)), 3))
			.isEqualTo(FailureAction.deadLetter());
	}

	@ParameterizedTest
	@MethodSource("ordinary")
	void otherFailuresAreRetriedLaterAndLater(Exception failure) {
		assertThat(decide(failure, null)).isEqualTo(FailureAction.retry(Duration.ofSeconds(5)));
		assertThat(decide(failure, 1)).isEqualTo(FailureAction.retry(Duration.ofSeconds(10)));
		assertThat(decide(failure, 2)).isEqualTo(FailureAction.retry(Duration.ofSeconds(20)));
		assertThat(decide(failure, 100)).isEqualTo(FailureAction.retry(Duration.ofMinutes(10)));
	}

	@Test
	void handlersChoiceComesFirst() {
		assertThat(decide(new RuntimeException(new RetryMessageException(Duration.ofMillis(400))), 7))
			.isEqualTo(FailureAction.retry(Duration.ofMillis(400)));
		assertThat(decide(
				new RetryMessageException(Duration.ofMillis(1), "again", new CannotGetJdbcConnectionException("none")),
				null))
			.isEqualTo(FailureAction.retry(Duration.ofMillis(1)));
		assertThat(decide(new RuntimeException(new RejectMessageException("no", new QueryTimeoutException("late"))), 0))
			.isEqualTo(FailureAction.deadLetter());
	}

	@Test
	void rulesComeBeforeTheDefaults() {
		DefaultPgqueErrorHandler handler = new DefaultPgqueErrorHandler(BackOffSettings.DEFAULT,
				new RetryRules(Set.of(QueryTimeoutException.class, MessageConversionException.class),
						Set.of(IllegalStateException.class, RuntimeException.class)));
		FailureAction retry = FailureAction.retry(Duration.ofSeconds(5));
		assertThat(decide(handler, new QueryTimeoutException("late"), false)).isEqualTo(retry);
		assertThat(decide(handler, new MessageConversionException("no JSON"), false)).isEqualTo(retry);
		assertThat(decide(handler, new IOException(new IllegalStateException()), false))
			.isEqualTo(FailureAction.deadLetter());
		// The nearest class, and the outermost exception.
		assertThat(decide(handler, new IllegalArgumentException(), false)).isEqualTo(FailureAction.deadLetter());
		assertThat(decide(handler, new QueryTimeoutException("late", new IllegalStateException()), false))
			.isEqualTo(retry);
		assertThat(decide(handler, new IllegalStateException(new QueryTimeoutException("late")), false))
			.isEqualTo(FailureAction.deadLetter());
		assertThat(decide(handler, new IOException(), false)).isEqualTo(retry);
		assertThat(decide(handler, new RetryMessageException(Duration.ZERO), false))
			.isEqualTo(FailureAction.retry(Duration.ZERO));
		assertThatIllegalArgumentException()
			.isThrownBy(() -> new RetryRules(Set.of(IOException.class), Set.of(IOException.class)))
			.withMessageContaining("java.io.IOException");
	}

	@Test
	void oneOfSeveralIsNotHopelessForAllOfThem() {
		assertThat(decide(this.handler, new ClassCastException(), true))
			.isEqualTo(FailureAction.retry(Duration.ofSeconds(5)));
		assertThat(decide(this.handler, new RejectMessageException("all of them"), true))
			.isEqualTo(FailureAction.deadLetter());
	}

	@Test
	void chainThatBitesItsTailEnds() {
		Exception first = new IllegalStateException("first");
		Exception second = new IllegalStateException("second", first);
		first.initCause(second);
		assertThat(decide(first, null)).isEqualTo(FailureAction.retry(Duration.ofSeconds(5)));
		assertThat(FailureReason.of(first)).contains("first", "second");
	}

	@Test
	void reasonNamesFailureAndRootCause() {
		assertThat(FailureReason.of(new IllegalStateException("declined")))
			.isEqualTo("java.lang.IllegalStateException: declined");
		assertThat(FailureReason.of(new IllegalStateException())).isEqualTo("java.lang.IllegalStateException");
		assertThat(FailureReason
			.of(new IllegalStateException("payment", new RuntimeException(new IllegalArgumentException("card")))))
			.isEqualTo("java.lang.IllegalStateException: payment; caused by java.lang.IllegalArgumentException: card");
		assertThat(FailureReason.of(new RuntimeException(new IllegalStateException("same"))))
			.isEqualTo("java.lang.RuntimeException: java.lang.IllegalStateException: same");
		assertThat(FailureReason.of(new RuntimeException(new RejectMessageException("only this"))))
			.isEqualTo("only this");
	}

	@Test
	void reasonCanBeStored() {
		String reason = FailureReason
			.of(new RejectMessageException("a\0b\uD83Dc\uDE00d\uD83D\uDE00" + "x".repeat(5000)));
		assertThat(reason).startsWith("ab\uFFFDc\uFFFDd\uD83D\uDE00xx").hasSize(FailureReason.MAX_LENGTH);
		assertThat(FailureReason.of(new IllegalStateException("x") {

			@Override
			public String getMessage() {
				throw new UnsupportedOperationException();
			}

		})).contains("its message failed with java.lang.UnsupportedOperationException");
	}

	private FailureAction decide(Exception failure, @Nullable Integer retryCount) {
		PgqueMessage message = new PgqueMessage(1, 2, "queue", "consumer", "type", "payload", retryCount,
				OffsetDateTime.now(), null, null, null, null, Map.of());
		return this.handler.handle(failure, message, new FailureContext("listener", 2, false));
	}

	private static FailureAction decide(PgqueErrorHandler handler, Exception failure, boolean wholeBatch) {
		PgqueMessage message = new PgqueMessage(1, 2, "queue", "consumer", "type", "payload", null,
				OffsetDateTime.now(), null, null, null, null, Map.of());
		return handler.handle(failure, message, new FailureContext("listener", 2, wholeBatch));
	}

}
