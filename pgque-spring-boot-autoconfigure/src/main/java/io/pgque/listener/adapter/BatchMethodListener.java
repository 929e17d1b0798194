package io.pgque.listener.adapter;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.BatchListenerFailedException;
import io.pgque.listener.PgqueBatch;
import io.pgque.listener.PgqueBatchListener;
import org.jspecify.annotations.Nullable;

/**
 * Calls a method that takes several messages. A message whose payload can't be converted
 * has failed, and the method is called with the others.
 */
final class BatchMethodListener implements PgqueBatchListener {

	private final MethodInvoker invoker;

	private final List<HandlerParameter> parameters;

	private final List<HandlerArgument> arguments;

	BatchMethodListener(MethodInvoker invoker, List<HandlerParameter> parameters, HandlerArguments arguments) {
		this.invoker = invoker;
		this.parameters = parameters;
		this.arguments = parameters.stream().map(arguments::create).toList();
	}

	@Override
	public void onBatch(PgqueBatch batch) throws Exception {
		List<PgqueMessage> messages = new ArrayList<>(batch.messages().size());
		List<List<@Nullable Object>> columns = this.parameters.stream()
			.<List<@Nullable Object>>map((parameter) -> new ArrayList<>())
			.toList();
		for (PgqueMessage message : batch.messages()) {
			try {
				addRow(columns, new HandledMessage(message, batch));
				messages.add(message);
			}
			catch (Exception ex) {
				batch.failed(message, ex);
			}
		}
		if (messages.isEmpty()) {
			return;
		}
		@Nullable Object[] values = new Object[columns.size()];
		for (int i = 0; i < values.length; i++) {
			values[i] = switch (this.parameters.get(i).kind()) {
				case BATCH, ACKNOWLEDGMENT ->
					(messages.size() < batch.messages().size()) ? new Converted(batch, List.copyOf(messages)) : batch;
				default -> columns.get(i);
			};
		}
		try {
			this.invoker.invoke(values, new HandledMessage(messages.get(0), batch));
		}
		catch (BatchListenerFailedException ex) {
			throw named(ex, messages);
		}
	}

	private void addRow(List<List<@Nullable Object>> columns, HandledMessage message) throws Exception {
		List<@Nullable Object> row = new ArrayList<>(columns.size());
		for (HandlerArgument argument : this.arguments) {
			row.add(argument.resolve(message));
		}
		for (int i = 0; i < columns.size(); i++) {
			columns.get(i).add(row.get(i));
		}
	}

	/**
	 * The position is one in the list that the method was given.
	 */
	private static BatchListenerFailedException named(BatchListenerFailedException failure,
			List<PgqueMessage> messages) {
		Throwable cause = failure.getCause();
		if (failure.getFailedMessage() != null || cause == null || failure.getIndex() < 0
				|| failure.getIndex() >= messages.size()) {
			return failure;
		}
		return new BatchListenerFailedException(cause, messages.get(failure.getIndex()));
	}

	/**
	 * A batch without the messages that could not be converted.
	 */
	private record Converted(PgqueBatch batch, List<PgqueMessage> messages) implements PgqueBatch {

		@Override
		public void done(PgqueMessage message) {
			this.batch.done(message);
		}

		@Override
		public void retry(PgqueMessage message, Duration delay, @Nullable String reason) {
			this.batch.retry(message, delay, reason);
		}

		@Override
		public void deadLetter(PgqueMessage message, String reason) {
			this.batch.deadLetter(message, reason);
		}

		@Override
		public void skip(PgqueMessage message) {
			this.batch.skip(message);
		}

		@Override
		public void failed(PgqueMessage message, Exception failure) {
			this.batch.failed(message, failure);
		}

		@Override
		public void acknowledge() {
			this.batch.acknowledge();
		}

	}

}
