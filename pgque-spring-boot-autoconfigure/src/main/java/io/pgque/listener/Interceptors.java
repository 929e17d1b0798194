package io.pgque.listener;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Consumer;

import io.pgque.core.PgqueMessage;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Calls handlers with interceptors around them.
 *
 * @param messages those of single messages, in their order
 * @param batches those of several messages, in their order
 */
record Interceptors(List<PgqueMessageInterceptor> messages, List<PgqueBatchInterceptor> batches) {

	private static final Log logger = LogFactory.getLog(Interceptors.class);

	static final Interceptors NONE = new Interceptors(List.of(), List.of());

	Interceptors {
		messages = List.copyOf(messages);
		batches = List.copyOf(batches);
	}

	/**
	 * Call a handler of one message.
	 */
	<T> @Nullable T call(PgqueMessage message, Callable<@Nullable T> handler) throws Exception {
		return around(this.messages, handler, new Steps<>() {

			@Override
			public void before(PgqueMessageInterceptor interceptor) {
				interceptor.before(message);
			}

			@Override
			public void success(PgqueMessageInterceptor interceptor) {
				interceptor.success(message);
			}

			@Override
			public void failure(PgqueMessageInterceptor interceptor, Throwable failure) {
				interceptor.failure(message, failure);
			}

			@Override
			public void after(PgqueMessageInterceptor interceptor) {
				interceptor.after(message);
			}

		});
	}

	/**
	 * Call a handler of several messages.
	 */
	<T> @Nullable T call(List<PgqueMessage> messages, Callable<@Nullable T> handler) throws Exception {
		return around(this.batches, handler, new Steps<>() {

			@Override
			public void before(PgqueBatchInterceptor interceptor) {
				interceptor.before(messages);
			}

			@Override
			public void success(PgqueBatchInterceptor interceptor) {
				interceptor.success(messages);
			}

			@Override
			public void failure(PgqueBatchInterceptor interceptor, Throwable failure) {
				interceptor.failure(messages, failure);
			}

			@Override
			public void after(PgqueBatchInterceptor interceptor) {
				interceptor.after(messages);
			}

		});
	}

	private static <I, T> @Nullable T around(List<I> interceptors, Callable<@Nullable T> handler, Steps<I> steps)
			throws Exception {
		int begun = 0;
		try {
			for (; begun < interceptors.size(); begun++) {
				steps.before(interceptors.get(begun));
			}
			T result = handler.call();
			for (int i = begun - 1; i >= 0; i--) {
				steps.success(interceptors.get(i));
			}
			return result;
		}
		catch (Throwable ex) {
			back(interceptors, begun, (interceptor) -> steps.failure(interceptor, ex));
			throw ex;
		}
		finally {
			back(interceptors, begun, steps::after);
		}
	}

	private static <I> void back(List<I> interceptors, int begun, Consumer<I> step) {
		for (int i = begun - 1; i >= 0; i--) {
			try {
				step.accept(interceptors.get(i));
			}
			catch (VirtualMachineError ex) {
				throw ex;
			}
			catch (Throwable ex) {
				logger.warn("Interceptor " + interceptors.get(i).getClass().getName()
						+ " failed after the handler had ended; that changes nothing", ex);
			}
		}
	}

	/**
	 * What is called of an interceptor.
	 */
	private interface Steps<I> {

		void before(I interceptor);

		void success(I interceptor);

		void failure(I interceptor, Throwable failure);

		void after(I interceptor);

	}

}
