package io.pgque.annotation;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

import javax.sql.DataSource;

import io.pgque.config.DefaultPgqueListenerContainerFactory;
import io.pgque.core.PgqueMessage;
import io.pgque.core.PgqueTemplate;
import io.pgque.listener.FailureAction;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.ReplySender;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.SharedEntityManagerCreator;
import org.springframework.orm.jpa.persistenceunit.PersistenceManagedTypes;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/**
 * Replies of handlers whose batch, effects and settlement are one JPA transaction.
 */
@PgqueDatabase
class TransactionalReplyTests {

	private static final List<String> calls = new CopyOnWriteArrayList<>();

	private static final AtomicInteger failures = new AtomicInteger();

	private final TestDatabase database;

	private final ListenerContext context;

	TransactionalReplyTests(TestDatabase database) {
		this.database = database;
		this.context = new ListenerContext(database);
	}

	@BeforeEach
	void createTables() {
		calls.clear();
		this.database.execute("create table if not exists booking (id bigint primary key, text text not null)");
		this.database.execute("create table if not exists voucher"
				+ " (booking bigint references booking (id) on delete cascade deferrable initially deferred)");
		this.database.execute("truncate booking cascade");
	}

	@AfterEach
	void tearDown() {
		this.context.close();
	}

	@Test
	void repliesCommitWithEffectsAndSettlement() {
		var registry = this.context.start(Sending.class, Booking.class);
		var container = registry.getListenerContainer("bookings.booking");
		this.context.send("bookings", "t", "a", "fails", "b", "marked", "c");
		await().until(() -> container.getCounters().batchesSettled() == 1);
		assertThat(bookings()).containsExactly("a", "b", "c");
		assertThat(replies("booked")).containsExactly("a booked", "b booked", "c booked");
		assertThat(this.database.value(Integer.class,
				"select count(distinct tx)::int from (select e.ev_txid::text as tx from pgque.event e"
						+ " join pgque.queue q on q.queue_id = e.ev_queue where q.queue_name = 'booked'"
						+ " union all select xmin::text from booking) x"))
			.as("transactions")
			.isOne();
		await().untilAsserted(() -> {
			assertThat(container.getCounters().handled()).isEqualTo(3);
			assertThat(container.getCounters().retried()).isEqualTo(2);
		});
		assertThat(calls).containsExactly("a", "fails", "a", "b", "marked", "a", "b", "c");
	}

	@Test
	void repliesRollBackWithEffectsAndSettlement() {
		failures.set(2);
		var registry = this.context.start(Sending.class, Refused.class);
		var container = registry.getListenerContainer("refused.booking");
		this.context.send("refused", "t", "a", "b");
		await().until(() -> container.getCounters().failures() == 1);
		assertThat(bookings()).isEmpty();
		assertThat(replies("confirmed")).isEmpty();
		assertThat(container.getCounters().handled()).isZero();
		await().until(() -> container.getCounters().batchesSettled() == 1);
		assertThat(container.getCounters().failures()).isEqualTo(2);
		assertThat(bookings()).containsExactly("a", "b");
		assertThat(replies("confirmed")).containsExactly("a confirmed", "b confirmed");
	}

	private List<String> bookings() {
		return this.database.values(String.class, "select text from booking order by id");
	}

	private List<String> replies(String queue) {
		return this.database.values(String.class,
				"select e.ev_data from pgque.event e"
						+ " join pgque.queue q on q.queue_id = e.ev_queue where q.queue_name = ? order by e.ev_id",
				queue);
	}

	@Configuration(proxyBeanMethods = false)
	static class Sending {

		@Bean
		DataSource pool(TestDatabase database) {
			return database.pool(5);
		}

		@Bean
		LocalContainerEntityManagerFactoryBean entities(DataSource pool) {
			LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
			factory.setDataSource(pool);
			factory.setManagedTypes(PersistenceManagedTypes.of(BookingRow.class.getName()));
			factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
			return factory;
		}

		@Bean
		PlatformTransactionManager transactionManager(EntityManagerFactory entities) {
			return new JpaTransactionManager(entities);
		}

		@Bean
		DefaultPgqueListenerContainerFactory pgqueListenerContainerFactory(DataSource pool,
				PlatformTransactionManager transactionManager) {
			DefaultPgqueListenerContainerFactory factory = ListenerContext.factory(pool);
			factory.setTransactionManager(() -> transactionManager);
			// As with Boot, not that of the batches.
			factory.setReplySender(new ReplySender(new PgqueTemplate(pool, new Jackson2MessageConverter()),
					new TransactionTemplate(new DataSourceTransactionManager(pool))));
			return factory;
		}

		@Bean
		PgqueErrorHandler later() {
			return (failure, message, context) -> FailureAction.retry(Duration.ofHours(1));
		}

	}

	abstract static class Persisting {

		final EntityManager entities;

		Persisting(EntityManagerFactory entities) {
			this.entities = SharedEntityManagerCreator.createSharedEntityManager(entities);
		}

		void persist(PgqueMessage message) {
			calls.add(message.payload());
			this.entities.persist(new BookingRow(message.id(), message.payload()));
		}

	}

	static class Booking extends Persisting {

		private final PlatformTransactionManager transactionManager;

		Booking(EntityManagerFactory entities, PlatformTransactionManager transactionManager) {
			super(entities);
			this.transactionManager = transactionManager;
		}

		@PgqueListener(queue = "bookings", consumer = "booking", transactional = "true", errorHandler = "later")
		@SendTo("booked")
		String book(PgqueMessage message) {
			persist(message);
			if ("fails".equals(message.payload())) {
				throw new IllegalStateException("no");
			}
			if ("marked".equals(message.payload())) {
				new TransactionTemplate(this.transactionManager)
					.executeWithoutResult(TransactionStatus::setRollbackOnly);
			}
			return message.payload() + " booked";
		}

	}

	static class Refused extends Persisting {

		Refused(EntityManagerFactory entities) {
			super(entities);
		}

		@PgqueListener(queue = "refused", consumer = "booking", transactional = "true")
		@SendTo("confirmed")
		String book(PgqueMessage message) {
			persist(message);
			if ("b".equals(message.payload()) && failures.getAndDecrement() > 0) {
				// The commit refuses it.
				this.entities.createNativeQuery("insert into voucher values (-1)").executeUpdate();
			}
			return message.payload() + " confirmed";
		}

	}

	@Entity
	@Table(name = "booking")
	static class BookingRow {

		@Id
		long id;

		String text;

		BookingRow() {
		}

		BookingRow(long id, String text) {
			this.id = id;
			this.text = text;
		}

	}

}
