package io.pgque.core;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Consumer;

import javax.sql.DataSource;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.PgqueMessageConverter;
import io.pgque.support.header.HeaderColumn;
import org.jspecify.annotations.Nullable;

import org.springframework.messaging.Message;
import org.springframework.util.Assert;

/**
 * Sends to log queues inside the transaction of its caller: called in a
 * {@code @Transactional} method, what it sends exists when, and only when, that
 * transaction commits. This is the outbox; there is no outbox table and no relay.
 *
 * <p>
 * The transaction has to be one of the same data source, whoever manages it: JDBC, JPA,
 * jOOQ or MyBatis. Outside a transaction each call commits by itself, unless
 * {@link #setTransactionRequired} says otherwise. A call in a read-only transaction is
 * refused before any statement. Calls in the callbacks after a commit commit by
 * themselves.
 *
 * <p>
 * Thread-safe once configured.
 *
 * @since 0.1.0
 */
public class PgqueTemplate implements PgqueOperations {

	private final PgqueClient client;

	private final PgqueMessageConverter converter;

	private final SendTransactions transactions;

	private PgqueEventTypeResolver eventTypeResolver = new SimpleEventTypeResolver();

	private HeaderColumn headerColumn = HeaderColumn.EXTRA4;

	/**
	 * Creates a template.
	 * @param dataSource leads to the database
	 * @param converter converts payloads
	 */
	public PgqueTemplate(DataSource dataSource, PgqueMessageConverter converter) {
		Assert.notNull(dataSource, "dataSource must not be null");
		Assert.notNull(converter, "converter must not be null");
		this.client = new PgqueClient(dataSource);
		this.converter = converter;
		this.transactions = new SendTransactions(dataSource);
	}

	/**
	 * Set whether sending outside a transaction is refused. It is not, by default.
	 * @param transactionRequired whether a transaction is required
	 */
	public void setTransactionRequired(boolean transactionRequired) {
		this.transactions.setTransactionRequired(transactionRequired);
	}

	/**
	 * Set who is told of commits, such as the ticker.
	 * @param commitListener the listener
	 */
	public void setCommitListener(CommitListener commitListener) {
		Assert.notNull(commitListener, "commitListener must not be null");
		this.transactions.setCommitListener(commitListener);
	}

	/**
	 * Set how the event type follows from a payload's class.
	 * @param eventTypeResolver the resolver
	 */
	public void setEventTypeResolver(PgqueEventTypeResolver eventTypeResolver) {
		Assert.notNull(eventTypeResolver, "eventTypeResolver must not be null");
		this.eventTypeResolver = eventTypeResolver;
	}

	/**
	 * Set the event column that carries headers; {@link HeaderColumn#EXTRA4} by default.
	 * @param headerColumn the column
	 */
	public void setHeaderColumn(HeaderColumn headerColumn) {
		Assert.notNull(headerColumn, "headerColumn must not be null");
		this.headerColumn = headerColumn;
	}

	@Override
	public long send(String queue, Object payload) {
		Assert.notNull(payload, "payload must not be null");
		MessageParts parts = (payload instanceof Message<?> message) ? SpringMessages.parts(message, this.headerColumn)
				: new MessageParts().payload(payload);
		return send(PgqueNames.requireQueue(queue), parts);
	}

	@Override
	public long send(String queue, String type, @Nullable Object payload) {
		return send(PgqueNames.requireQueue(queue), new MessageParts().type(type).payload(payload));
	}

	@Override
	public long send(String queue, Consumer<SendSpec> spec) {
		Assert.notNull(spec, "spec must not be null");
		String name = PgqueNames.requireQueue(queue);
		MessageParts parts = new MessageParts();
		spec.accept(parts);
		return send(name, parts);
	}

	@Override
	public long send(Message<?> message) {
		Assert.notNull(message, "message must not be null");
		return send(SpringMessages.queue(message), SpringMessages.parts(message, this.headerColumn));
	}

	private long send(String queue, MessageParts parts) {
		String type = (parts.type() != null) ? parts.type() : typeOf(parts.payload());
		PgText.check(queue, "type", type);
		EventExtras extras = parts.extras(queue, this.headerColumn);
		String text = this.converter.toText(parts.payload());
		PgText.check(queue, "payload", text);
		return this.transactions.send(queue, () -> this.client.send(queue, type, text, extras));
	}

	@Override
	public List<Long> sendBatch(String queue, Collection<?> payloads) {
		String name = PgqueNames.requireQueue(queue);
		List<@Nullable String> texts = texts(name, payloads);
		if (texts.isEmpty()) {
			return List.of();
		}
		List<String> types = new ArrayList<>(texts.size());
		payloads.forEach((payload) -> types.add(typeOf(payload)));
		types.forEach((type) -> PgText.check(name, "type", type));
		String first = types.get(0);
		boolean alike = types.stream().allMatch(first::equals);
		return this.transactions.send(name,
				() -> alike ? this.client.sendBatch(name, first, texts) : this.client.sendBatch(name, types, texts));
	}

	@Override
	public List<Long> sendBatch(String queue, String type, Collection<?> payloads) {
		Assert.notNull(type, "type must not be null");
		String name = PgqueNames.requireQueue(queue);
		PgText.check(name, "type", type);
		List<@Nullable String> texts = texts(name, payloads);
		return texts.isEmpty() ? List.of()
				: this.transactions.send(name, () -> this.client.sendBatch(name, type, texts));
	}

	private List<@Nullable String> texts(String queue, Collection<?> payloads) {
		Assert.notNull(payloads, "payloads must not be null");
		List<@Nullable String> texts = new ArrayList<>(payloads.size());
		for (Object payload : payloads) {
			String text = this.converter.toText(payload);
			PgText.check(queue, "payload at position " + texts.size(), text);
			texts.add(text);
		}
		return texts;
	}

	private String typeOf(@Nullable Object payload) {
		return this.eventTypeResolver.resolve((payload != null) ? payload.getClass() : null);
	}

}
