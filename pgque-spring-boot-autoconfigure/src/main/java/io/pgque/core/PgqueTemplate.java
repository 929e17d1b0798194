package io.pgque.core;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Function;

import javax.sql.DataSource;

import io.pgque.client.EventExtras;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.PgqueMessageConverter;
import io.pgque.support.header.HeaderColumn;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.DisposableBean;
import org.springframework.messaging.Message;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.util.Assert;
import org.springframework.util.ClassUtils;

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
 * What needs no id back, {@link #publish} and {@link #sendLater}, is collected inside a
 * transaction and written before it commits: one statement for each queue, however many
 * messages. Rolling back to a savepoint through Spring drops what was collected since;
 * rolling back to one of a JDBC connection by hand does not.
 *
 * <p>
 * Thread-safe once configured.
 *
 * @since 0.1.0
 */
public class PgqueTemplate implements PgqueOperations, DisposableBean {

	private static final Log logger = LogFactory.getLog(PgqueTemplate.class);

	/**
	 * The largest payload in bytes of UTF-8 unless set otherwise.
	 */
	public static final long DEFAULT_MAX_PAYLOAD_BYTES = 128L * 1024 * 1024;

	private final PgqueClient client;

	private final EventWriter writer;

	private final PgqueMessageConverter converter;

	private final SendTransactions transactions;

	private final AsyncSends asyncSends = new AsyncSends();

	private PgqueEventTypeResolver eventTypeResolver = new SimpleEventTypeResolver();

	private HeaderColumn headerColumn = HeaderColumn.EXTRA4;

	private SendObserver sendObserver = SendObserver.NONE;

	private long maxPayloadBytes = DEFAULT_MAX_PAYLOAD_BYTES;

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
		this.writer = new EventWriter(this.client);
		this.transactions = new SendTransactions(dataSource, this.writer::write);
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
	 * Return what has this template follow the transactions of the managers that it is
	 * added to, with
	 * {@link org.springframework.transaction.ConfigurableTransactionManager#addListener
	 * addListener} before they are in use. A template finds out by itself what
	 * transaction it sends in; where it is told, {@link #publish} and {@link #sendLater}
	 * cost less, what callbacks before the commit send is collected too, and what is sent
	 * in a transaction of another data source belongs to the one that it began inside of.
	 * The managers may be those of other data sources as well. The starter does it for
	 * all beans.
	 * @return the listener
	 * @since 0.2.0
	 */
	public TransactionExecutionListener getTransactionExecutionListener() {
		return this.transactions.follower();
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

	/**
	 * Set what observes sends; nothing does by default.
	 * @param sendObserver the observer
	 */
	public void setSendObserver(SendObserver sendObserver) {
		Assert.notNull(sendObserver, "sendObserver must not be null");
		this.sendObserver = sendObserver;
	}

	/**
	 * Set where asynchronous sends run: on threads of their own, four at a time, unless
	 * set.
	 * @param executor the executor, which isn't shut down by the template
	 * @since 0.2.0
	 */
	public void setAsyncExecutor(Executor executor) {
		Assert.notNull(executor, "executor must not be null");
		this.asyncSends.setExecutor(executor);
	}

	/**
	 * Set how large a payload may be; {@link #DEFAULT_MAX_PAYLOAD_BYTES} by default.
	 * @param maxPayloadBytes the most bytes of UTF-8
	 */
	public void setMaxPayloadBytes(long maxPayloadBytes) {
		Assert.isTrue(maxPayloadBytes > 0, "maxPayloadBytes must be positive");
		this.maxPayloadBytes = maxPayloadBytes;
	}

	@Override
	public long send(String queue, Object payload) {
		Assert.notNull(payload, "payload must not be null");
		return send(PgqueNames.requireQueue(queue), parts(payload)).id();
	}

	@Override
	public long send(String queue, String type, @Nullable Object payload) {
		return send(PgqueNames.requireQueue(queue), parts(type, payload)).id();
	}

	@Override
	public long send(String queue, Consumer<SendSpec> spec) {
		return sendForResult(queue, spec).id();
	}

	@Override
	public long send(Message<?> message) {
		Assert.notNull(message, "message must not be null");
		return send(SpringMessages.queue(message), SpringMessages.parts(message, this.headerColumn)).id();
	}

	@Override
	public SendResult sendForResult(String queue, Consumer<SendSpec> spec) {
		String name = PgqueNames.requireQueue(queue);
		SendResult result = send(name, parts(spec));
		if (result.mismatch()) {
			logger.warn("A message for queue '" + name + "' was not sent, since its idempotency key was used before "
					+ "for message " + result.id() + ", which has another type or payload. A key has to name the "
					+ "effect, not the thing");
		}
		return result;
	}

	@Override
	public List<Long> sendBatch(String queue, Collection<?> payloads) {
		return sendBatch(queue, payloads, this::parts);
	}

	@Override
	public List<Long> sendBatch(String queue, String type, Collection<?> payloads) {
		Assert.notNull(type, "type must not be null");
		return sendBatch(queue, payloads, (payload) -> parts(type, payload));
	}

	@Override
	public void sendLater(String queue, Object payload) {
		Assert.notNull(payload, "payload must not be null");
		sendLater(PgqueNames.requireQueue(queue), parts(payload));
	}

	@Override
	public void sendLater(String queue, String type, @Nullable Object payload) {
		sendLater(PgqueNames.requireQueue(queue), parts(type, payload));
	}

	@Override
	public void sendLater(String queue, Consumer<SendSpec> spec) {
		sendLater(PgqueNames.requireQueue(queue), parts(spec));
	}

	@Override
	public void publish(Object event) {
		Assert.notNull(event, "event must not be null");
		sendLater(PgqueEvents.queue(ClassUtils.getUserClass(event)), new MessageParts().payload(event));
	}

	@Override
	public boolean cancelDelayed(String queue, long id) {
		String name = PgqueNames.requireQueue(queue);
		return this.transactions.send(name, () -> this.client.cancelDelayed(name, id));
	}

	@Override
	public CompletableFuture<Long> sendAsync(String queue, Object payload) {
		Assert.notNull(payload, "payload must not be null");
		return sendAsync(PgqueNames.requireQueue(queue), parts(payload));
	}

	@Override
	public CompletableFuture<Long> sendAsync(String queue, String type, @Nullable Object payload) {
		return sendAsync(PgqueNames.requireQueue(queue), parts(type, payload));
	}

	@Override
	public CompletableFuture<Long> sendAsync(String queue, Consumer<SendSpec> spec) {
		return sendAsync(PgqueNames.requireQueue(queue), parts(spec));
	}

	@Override
	public ReceivedBatch receive(String queue, String consumer) {
		return BatchReader.receive(this.client, PgqueNames.requireQueue(queue), PgqueNames.requireConsumer(consumer),
				this.headerColumn);
	}

	@Override
	public boolean ack(long batchId) {
		return this.client.settle(batchId, null, List.of()).settled();
	}

	@Override
	public boolean nack(PgqueMessage message, Duration delay, @Nullable String reason) {
		Assert.notNull(message, "message must not be null");
		Assert.isTrue(!delay.isNegative(), () -> "delay must not be negative: " + delay);
		return this.client.nack(message.batchId(), message.id(), delay,
				(reason != null) ? PgText.storable(reason) : null);
	}

	/**
	 * Wait for what is being sent on other threads.
	 * @since 0.2.0
	 */
	@Override
	public void destroy() {
		this.asyncSends.close();
	}

	private MessageParts parts(@Nullable Object payload) {
		return (payload instanceof Message<?> message) ? SpringMessages.parts(message, this.headerColumn)
				: new MessageParts().payload(payload);
	}

	private MessageParts parts(String type, @Nullable Object payload) {
		return parts(payload).type(type);
	}

	private static MessageParts parts(Consumer<SendSpec> spec) {
		Assert.notNull(spec, "spec must not be null");
		MessageParts parts = new MessageParts();
		spec.accept(parts);
		return parts;
	}

	private SendResult send(String queue, MessageParts parts) {
		String type = type(parts);
		SendObserver.Send observed = this.sendObserver.begin(queue, type, parts::observed);
		try {
			OutgoingEvent event = event(queue, type, parts, "");
			SendResult result = this.transactions.send(queue, () -> this.writer.write(event));
			observed.sent(result.id());
			return result;
		}
		catch (RuntimeException | Error ex) {
			observed.failed(ex);
			throw ex;
		}
	}

	private CompletableFuture<Long> sendAsync(String queue, MessageParts parts) {
		String type = type(parts);
		SendObserver.Send observed = this.sendObserver.begin(queue, type, parts::observed);
		try {
			OutgoingEvent event = event(queue, type, parts, "");
			CompletableFuture<Long> id = this.asyncSends.send(queue,
					() -> this.transactions.send(queue, () -> this.writer.write(event)).id());
			observed.sent(null);
			return id;
		}
		catch (RuntimeException | Error ex) {
			observed.failed(ex);
			throw ex;
		}
	}

	private void sendLater(String queue, MessageParts parts) {
		String type = type(parts);
		SendObserver.Send observed = this.sendObserver.begin(queue, type, parts::observed);
		try {
			OutgoingEvent event = event(queue, type, parts, "");
			if (event.isPlain()) {
				this.transactions.sendLater(event);
			}
			else {
				this.transactions.send(queue, () -> this.writer.write(event));
			}
			observed.sent(null);
		}
		catch (RuntimeException | Error ex) {
			observed.failed(ex);
			throw ex;
		}
	}

	private List<Long> sendBatch(String queue, Collection<?> payloads, Function<@Nullable Object, MessageParts> split) {
		String name = PgqueNames.requireQueue(queue);
		Assert.notNull(payloads, "payloads must not be null");
		if (payloads.isEmpty()) {
			return List.of();
		}
		List<MessageParts> all = new ArrayList<>(payloads.size());
		payloads.forEach((payload) -> all.add(split.apply(payload)));
		List<String> types = all.stream().map(this::type).toList();
		String type = types.stream().allMatch(types.get(0)::equals) ? types.get(0) : null;
		SendObserver.Send observed = this.sendObserver.begin(name, type,
				(header, value) -> all.forEach((parts) -> parts.observed(header, value)));
		try {
			List<OutgoingEvent> events = new ArrayList<>(all.size());
			for (int i = 0; i < all.size(); i++) {
				events.add(event(name, types.get(i), all.get(i), " at position " + i));
			}
			List<Long> ids = this.transactions.send(name, () -> this.writer.write(name, events));
			observed.sent(null);
			return ids;
		}
		catch (RuntimeException | Error ex) {
			observed.failed(ex);
			throw ex;
		}
	}

	private String type(MessageParts parts) {
		String type = parts.type();
		Object payload = parts.payload();
		return (type != null) ? type : this.eventTypeResolver.resolve((payload != null) ? payload.getClass() : null);
	}

	private OutgoingEvent event(String queue, String type, MessageParts parts, String place) {
		PgText.check(queue, "type" + place, type);
		OutgoingEvent.Idempotency idempotency = parts.idempotency(queue);
		parts.version();
		EventExtras extras = parts.extras(queue, this.headerColumn);
		String text = this.converter.toText(parts.payload());
		PgText.checkSize(queue, "payload" + place, text, this.maxPayloadBytes);
		PgText.check(queue, "payload" + place, text);
		return new OutgoingEvent(queue, type, text, extras, idempotency, parts.delivery());
	}

}
