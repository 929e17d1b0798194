package io.pgque.core;

import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import javax.sql.DataSource;

import io.pgque.QueueNotFoundException;
import io.pgque.client.PgqueClient;
import io.pgque.support.header.HeaderColumn;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionOperations;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.util.Assert;

/**
 * Administers log queues. At start-up it creates the queues of the application's
 * {@link PgqueQueue} beans, or brings existing ones to the stated settings; several
 * instances may do so at the same time.
 *
 * @since 0.1.0
 */
public class PgqueAdmin implements PgqueAdminOperations, SmartInitializingSingleton {

	private static final Log logger = LogFactory.getLog(PgqueAdmin.class);

	/**
	 * For start-up not to hang behind somebody's open transaction.
	 */
	private static final Duration STATEMENT_TIMEOUT = Duration.ofMinutes(1);

	private final PgqueClient client;

	private final Collection<PgqueQueue> definitions;

	// A queue and its settings appear together.
	private final PgqueClient deadLetterClient;

	private final TransactionOperations transaction;

	private boolean autoCreate = true;

	private Map<String, String> defaults = Map.of();

	private HeaderColumn headerColumn = HeaderColumn.EXTRA4;

	/**
	 * Creates an administrator.
	 * @param dataSource leads to the database
	 * @param definitions the queues to create at start-up
	 */
	public PgqueAdmin(DataSource dataSource, Collection<PgqueQueue> definitions) {
		this.client = new PgqueClient(dataSource, STATEMENT_TIMEOUT);
		this.deadLetterClient = new PgqueClient(dataSource);
		this.definitions = List.copyOf(definitions);
		this.transaction = new TransactionTemplate(new JdbcTransactionManager(dataSource));
	}

	/**
	 * Set whether {@link #ensureQueue(String)} may create queues. It may, by default.
	 * @param autoCreate whether queues are created
	 */
	public void setAutoCreate(boolean autoCreate) {
		this.autoCreate = autoCreate;
	}

	/**
	 * Set the settings of queues that are created here and state nothing else.
	 * @param defaults a definition whose settings are taken; its name does not matter
	 */
	public void setQueueDefaults(PgqueQueue defaults) {
		this.defaults = defaults.getSettings();
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
	public void afterSingletonsInstantiated() {
		this.definitions.forEach(this::createQueue);
	}

	@Override
	public boolean createQueue(PgqueQueue queue) {
		if (this.client.queueExists(queue.getName())) {
			reconcile(queue.getName(), queue.getSettings());
			return false;
		}
		return create(queue.getName(), queue.getSettings());
	}

	@Override
	public void ensureQueue(String queue) {
		String name = PgqueNames.requireQueue(queue);
		boolean exists = this.client.queueExists(name);
		if (!exists && !this.autoCreate) {
			throw new QueueNotFoundException(name,
					"Queue '" + name + "' does not exist, and pgque.admin.auto-create is off",
					"Create it, as a member of pgque_admin, with pgque.create_queue('" + name.replace("'", "''") + "')",
					null);
		}
		if (!exists) {
			create(name, Map.of());
		}
	}

	private boolean create(String queue, Map<String, String> settings) {
		return Boolean.TRUE.equals(this.transaction.execute((status) -> {
			boolean created = this.client.createQueue(queue);
			if (created) {
				logger.info("Created queue '" + queue + "'");
				Map<String, String> all = new LinkedHashMap<>(this.defaults);
				all.putAll(settings);
				all.forEach((parameter, value) -> this.client.setQueueConfig(queue, parameter, value));
			}
			else {
				// Another instance was quicker.
				reconcile(queue, settings);
			}
			return created;
		}));
	}

	/**
	 * Only what differs is written, so that where nothing does a role that may not
	 * needn't.
	 */
	private void reconcile(String queue, Map<String, String> settings) {
		if (settings.isEmpty()) {
			return;
		}
		Map<String, @Nullable String> different = this.client.differingSettings(queue, settings);
		if (!different.isEmpty()) {
			this.transaction.executeWithoutResult((status) -> different.forEach((parameter, present) -> {
				String stated = settings.get(parameter);
				this.client.setQueueConfig(queue, parameter, stated);
				logger.info("Changed " + parameter + " of queue '" + queue + "' from "
						+ ((present != null) ? present : "the engine's default") + " to " + stated
						+ ", as this application states it");
			}));
		}
	}

	@Override
	public void dropQueue(String queue, boolean force) {
		this.client.dropQueue(PgqueNames.requireQueue(queue), force);
	}

	@Override
	public boolean subscribe(String queue, String consumer) {
		return this.client.subscribe(PgqueNames.requireQueue(queue), PgqueNames.requireConsumer(consumer));
	}

	@Override
	public boolean unsubscribe(String queue, String consumer) {
		return this.client.unsubscribe(PgqueNames.requireQueue(queue), PgqueNames.requireConsumer(consumer));
	}

	@Override
	public List<QueueInfo> queues() {
		return this.client.queues().stream().map(QueueInfo::from).toList();
	}

	@Override
	public List<ConsumerInfo> consumers() {
		return this.client.consumers().stream().map(ConsumerInfo::from).toList();
	}

	@Override
	public String version() {
		return this.client.version();
	}

	@Override
	public PgqueDeadLetterOperations deadLetters() {
		return new DeadLetters(this.deadLetterClient, this.headerColumn);
	}

}
