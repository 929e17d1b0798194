package io.pgque.core;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.function.Consumer;

import io.pgque.listener.PgqueMessageListenerContainer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Implementations of public interfaces that were written for the first release go on
 * compiling, and tell what they can't do.
 */
class InterfaceDefaultsTests {

	@Test
	void operationsSayWhatTheyDoNotImplement() {
		PgqueOperations operations = olderImplementation(PgqueOperations.class);
		PgqueMessage message = new PgqueMessage(1, 2, "queue", "consumer", "type", "payload", null,
				OffsetDateTime.now(), null, null, null, null, Map.of());
		Consumer<SendSpec> spec = (sent) -> sent.payload("payload");
		assertUnsupported("sendAsync", () -> operations.sendAsync("queue", "payload"));
		assertUnsupported("sendAsync", () -> operations.sendAsync("queue", "type", "payload"));
		assertUnsupported("sendAsync", () -> operations.sendAsync("queue", spec));
		assertUnsupported("receive", () -> operations.receive("queue", "consumer"));
		assertUnsupported("ack", () -> operations.ack(1));
		assertUnsupported("nack", () -> operations.nack(message, Duration.ofSeconds(1), null));
	}

	@Test
	void containerThatDoesNotKnowIsNotFailing() {
		assertThat(olderImplementation(PgqueMessageListenerContainer.class).isFailing()).isFalse();
	}

	private static void assertUnsupported(String method, ThrowingCallable call) {
		assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(call)
			.withMessageContaining(" does not implement " + method + ". Implement it there, or use PgqueTemplate");
	}

	/**
	 * Has what the interface itself implements, and nothing else.
	 */
	private static <T> T olderImplementation(Class<T> type) {
		InvocationHandler handler = InvocationHandler::invokeDefault;
		return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] { type }, handler));
	}

}
