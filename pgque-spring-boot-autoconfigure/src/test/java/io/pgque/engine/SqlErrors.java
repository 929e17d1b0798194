package io.pgque.engine;

import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

import org.springframework.core.NestedExceptionUtils;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

/**
 * What the server says when it refuses a statement.
 */
final class SqlErrors {

	private SqlErrors() {
	}

	/**
	 * Run what has to fail, and return the server's message with its code and hint.
	 */
	static ServerErrorMessage error(ThrowingCallable work) {
		Throwable thrown = catchThrowable(work);
		assertThat(thrown).as("an error of the server").isNotNull();
		Throwable cause = NestedExceptionUtils.getMostSpecificCause(thrown);
		assertThat(cause).isInstanceOf(PSQLException.class);
		ServerErrorMessage message = ((PSQLException) cause).getServerErrorMessage();
		assertThat(message).as("message of the server").isNotNull();
		return message;
	}

}
