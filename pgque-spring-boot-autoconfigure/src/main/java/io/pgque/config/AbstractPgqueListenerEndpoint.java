package io.pgque.config;

import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.Set;

import io.pgque.listener.AckMode;
import io.pgque.listener.ListenerMode;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageFilter;
import org.jspecify.annotations.Nullable;

import org.springframework.util.Assert;

/**
 * What endpoints have in common: where their messages come from, and what they ask of
 * their container.
 *
 * @since 0.1.0
 */
public abstract sealed class AbstractPgqueListenerEndpoint implements PgqueListenerEndpoint
		permits MethodPgqueListenerEndpoint, SimplePgqueListenerEndpoint {

	private final String queue;

	private @Nullable String id;

	private @Nullable String consumer;

	private Set<String> types = Set.of();

	private @Nullable Boolean autoStartup;

	private @Nullable PgqueErrorHandler errorHandler;

	private @Nullable AckMode ackMode;

	private @Nullable PgqueMessageFilter filter;

	private @Nullable PgqueContainerCustomizer containerCustomizer;

	private @Nullable ListenerMode mode;

	private @Nullable Integer concurrency;

	private @Nullable Integer partitions;

	private @Nullable Boolean transactional;

	/**
	 * Create an endpoint.
	 * @param queue the queue name
	 */
	AbstractPgqueListenerEndpoint(String queue) {
		Assert.hasText(queue, "queue must not be empty");
		this.queue = queue;
	}

	/**
	 * Set the id of the container.
	 * @param id the id, {@code null} to have one made
	 */
	public void setId(@Nullable String id) {
		this.id = id;
	}

	/**
	 * Set the consumer.
	 * @param consumer the consumer name, {@code null} for the default
	 */
	public void setConsumer(@Nullable String consumer) {
		this.consumer = consumer;
	}

	/**
	 * Set the event types that the handler takes.
	 * @param types the types, none for the default
	 */
	public void setTypes(Collection<String> types) {
		this.types = Set.copyOf(new LinkedHashSet<>(types));
	}

	/**
	 * Set whether the container starts with the application.
	 * @param autoStartup whether it does, {@code null} for the default
	 */
	public void setAutoStartup(@Nullable Boolean autoStartup) {
		this.autoStartup = autoStartup;
	}

	/**
	 * Set the error handler of the container.
	 * @param errorHandler the error handler, {@code null} for the default
	 */
	public void setErrorHandler(@Nullable PgqueErrorHandler errorHandler) {
		this.errorHandler = errorHandler;
	}

	/**
	 * Set who says that a message is done.
	 * @param ackMode the mode, {@code null} for the default
	 */
	public void setAckMode(@Nullable AckMode ackMode) {
		this.ackMode = ackMode;
	}

	/**
	 * Set which messages the handler is to have.
	 * @param filter the filter, {@code null} for all
	 */
	public void setFilter(@Nullable PgqueMessageFilter filter) {
		this.filter = filter;
	}

	/**
	 * Set what changes the properties of the container.
	 * @param containerCustomizer the customizer, {@code null} for none
	 */
	public void setContainerCustomizer(@Nullable PgqueContainerCustomizer containerCustomizer) {
		this.containerCustomizer = containerCustomizer;
	}

	/**
	 * Set how the instances of the application share the consumer.
	 * @param mode the mode, {@code null} for the default
	 */
	public void setMode(@Nullable ListenerMode mode) {
		this.mode = mode;
	}

	/**
	 * Set how many handlers run at the same time in this instance.
	 * @param concurrency the number, {@code null} for the default
	 */
	public void setConcurrency(@Nullable Integer concurrency) {
		this.concurrency = concurrency;
	}

	/**
	 * Set the number of slots of a partitioned consumer.
	 * @param partitions the number, {@code null} for the default
	 */
	public void setPartitions(@Nullable Integer partitions) {
		this.partitions = partitions;
	}

	/**
	 * Set whether a batch is received, handled and settled in one transaction.
	 * @param transactional whether it is, {@code null} for the default
	 */
	public void setTransactional(@Nullable Boolean transactional) {
		this.transactional = transactional;
	}

	@Override
	public @Nullable String getId() {
		return this.id;
	}

	@Override
	public String getQueue() {
		return this.queue;
	}

	@Override
	public @Nullable String getConsumer() {
		return this.consumer;
	}

	@Override
	public Set<String> getTypes() {
		return this.types;
	}

	@Override
	public @Nullable Boolean getAutoStartup() {
		return this.autoStartup;
	}

	@Override
	public @Nullable PgqueErrorHandler getErrorHandler() {
		return this.errorHandler;
	}

	@Override
	public @Nullable AckMode getAckMode() {
		return this.ackMode;
	}

	@Override
	public @Nullable PgqueMessageFilter getFilter() {
		return this.filter;
	}

	@Override
	public @Nullable PgqueContainerCustomizer getContainerCustomizer() {
		return this.containerCustomizer;
	}

	@Override
	public @Nullable ListenerMode getMode() {
		return this.mode;
	}

	@Override
	public @Nullable Integer getConcurrency() {
		return this.concurrency;
	}

	@Override
	public @Nullable Integer getPartitions() {
		return this.partitions;
	}

	@Override
	public @Nullable Boolean getTransactional() {
		return this.transactional;
	}

	@Override
	public String toString() {
		return getDescription();
	}

}
