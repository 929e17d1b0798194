package io.pgque.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.client.EventRow;
import io.pgque.client.PgqueClient;
import io.pgque.support.converter.Jackson2MessageConverter;
import io.pgque.testsupport.PgqueDatabase;
import io.pgque.testsupport.TestDatabase;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Id;
import jakarta.persistence.PostPersist;
import jakarta.persistence.Table;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.session.Configuration;
import org.apache.ibatis.session.SqlSessionFactory;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.jooq.impl.DataSourceConnectionProvider;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;
import org.mybatis.spring.SqlSessionFactoryBean;
import org.mybatis.spring.SqlSessionTemplate;

import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;
import org.springframework.orm.jpa.SharedEntityManagerCreator;
import org.springframework.orm.jpa.vendor.HibernateJpaVendorAdapter;
import org.springframework.transaction.ConfigurableTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/**
 * Tests for {@link PgqueTemplate} in transactions of JPA, MyBatis and jOOQ: rows and
 * messages are committed together or not at all.
 */
@PgqueDatabase
@ParameterizedClass(name = "followed: {0}")
@ValueSource(booleans = { false, true })
class ForeignTransactionManagerTests {

	private static int number;

	/**
	 * What the entity does while the transaction is about to commit.
	 */
	private static Runnable whilePersisting = () -> {
	};

	private final String queue = "queue" + (++number);

	private final boolean followed;

	private final TestDatabase database;

	private final HikariDataSource pool;

	private final PgqueClient client;

	private final PgqueTemplate template;

	private final List<Set<String>> commits = new ArrayList<>();

	ForeignTransactionManagerTests(boolean followed, TestDatabase database) {
		this.followed = followed;
		this.database = database;
		this.pool = database.pool(2);
		this.client = new PgqueClient(this.pool);
		this.template = new PgqueTemplate(this.pool, new Jackson2MessageConverter());
		this.template.setCommitListener(this.commits::add);
	}

	@BeforeEach
	void setUp() {
		this.database.execute("create table if not exists purchase (id bigint primary key)");
		this.database.execute("truncate purchase");
		this.client.createQueue(this.queue);
		this.client.subscribe(this.queue, "c");
	}

	@AfterEach
	void close() {
		whilePersisting = () -> {
		};
		assertThat(this.pool.getHikariPoolMXBean().getActiveConnections()).isZero();
		this.pool.close();
	}

	private <T extends ConfigurableTransactionManager> T follow(T transactionManager) {
		if (this.followed) {
			transactionManager.addListener(this.template.getTransactionExecutionListener());
		}
		return transactionManager;
	}

	private List<String> received() {
		this.client.tickAll();
		List<EventRow> rows = this.client.receiveBatch(this.queue, "c", 1000, 1_000_000).rows();
		if (!rows.isEmpty()) {
			this.client.settle(rows.get(0).batchId(), null, List.of());
		}
		return rows.stream().map(EventRow::data).toList();
	}

	private List<Long> rows() {
		return this.database.values(Long.class, "select id from purchase order by id");
	}

	private void assertRowsAndMessagesGoTogether(PlatformTransactionManager transactionManager, Consumer<Long> insert) {
		TransactionTemplate transaction = new TransactionTemplate(transactionManager);
		transaction.executeWithoutResult((status) -> {
			insert.accept(1L);
			this.template.send(this.queue, "at once");
			this.template.sendLater(this.queue, "later");
			assertThat(TransactionSynchronizationManager.getResourceMap()
				.keySet()
				.stream()
				.anyMatch(SendTransactions.class::isInstance)).as("has had to be found").isEqualTo(!this.followed);
		});
		assertThat(received()).containsExactly("at once", "later");
		assertThat(this.commits).containsExactly(Set.of(this.queue));
		assertThat(rows()).containsExactly(1L);
		assertThatExceptionOfType(IllegalStateException.class)
			.isThrownBy(() -> transaction.executeWithoutResult((status) -> {
				this.template.send(this.queue, "never");
				this.template.sendLater(this.queue, "never");
				insert.accept(2L);
				throw new IllegalStateException("rolled back");
			}));
		assertThat(received()).isEmpty();
		assertThat(rows()).containsExactly(1L);
		assertThat(this.commits).hasSize(1);
		TransactionTemplate apart = new TransactionTemplate(transactionManager);
		apart.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
		transaction.executeWithoutResult((status) -> {
			this.template.sendLater(this.queue, "outer");
			apart.executeWithoutResult((inner) -> {
				insert.accept(3L);
				this.template.sendLater(this.queue, "inner");
			});
			status.setRollbackOnly();
		});
		assertThat(received()).containsExactly("inner");
		assertThat(rows()).containsExactly(1L, 3L);
	}

	@Test
	void jpa() {
		EntityManagerFactory factory = entityManagerFactory();
		try {
			EntityManager entityManager = SharedEntityManagerCreator.createSharedEntityManager(factory);
			assertRowsAndMessagesGoTogether(follow(new JpaTransactionManager(factory)),
					(id) -> entityManager.persist(new Purchase(id)));
		}
		finally {
			factory.close();
		}
	}

	/**
	 * The entity manager writes at the very end, when what was collected is written
	 * already.
	 */
	@Test
	void entitiesMaySendWhileTheyAreWritten() {
		EntityManagerFactory factory = entityManagerFactory();
		try {
			EntityManager entityManager = SharedEntityManagerCreator.createSharedEntityManager(factory);
			TransactionTemplate transaction = new TransactionTemplate(follow(new JpaTransactionManager(factory)));
			whilePersisting = () -> this.template.sendLater(this.queue, "by the entity");
			transaction.executeWithoutResult((status) -> {
				this.template.sendLater(this.queue, "before");
				entityManager.persist(new Purchase(1));
				entityManager.flush();
				entityManager.persist(new Purchase(2));
			});
			assertThat(received()).containsExactly("before", "by the entity", "by the entity");
			transaction.executeWithoutResult((status) -> entityManager.persist(new Purchase(3)));
			assertThat(received()).containsExactly("by the entity");
			assertThat(this.commits).hasSize(2);
		}
		finally {
			factory.close();
		}
	}

	private EntityManagerFactory entityManagerFactory() {
		LocalContainerEntityManagerFactoryBean factory = new LocalContainerEntityManagerFactoryBean();
		factory.setDataSource(this.pool);
		factory.setJpaVendorAdapter(new HibernateJpaVendorAdapter());
		factory.setPackagesToScan(getClass().getPackageName());
		factory.afterPropertiesSet();
		EntityManagerFactory created = factory.getObject();
		assertThat(created).isNotNull();
		return created;
	}

	@Test
	void myBatis() throws Exception {
		SqlSessionFactoryBean factory = new SqlSessionFactoryBean();
		factory.setDataSource(this.pool);
		Configuration configuration = new Configuration();
		configuration.addMapper(PurchaseMapper.class);
		factory.setConfiguration(configuration);
		SqlSessionFactory created = factory.getObject();
		assertThat(created).isNotNull();
		PurchaseMapper mapper = new SqlSessionTemplate(created).getMapper(PurchaseMapper.class);
		assertRowsAndMessagesGoTogether(follow(new JdbcTransactionManager(this.pool)), mapper::insert);
	}

	@Test
	void jooq() {
		var connections = new DataSourceConnectionProvider(new TransactionAwareDataSourceProxy(this.pool));
		var dsl = DSL.using(connections, SQLDialect.POSTGRES);
		assertRowsAndMessagesGoTogether(follow(new JdbcTransactionManager(this.pool)),
				(id) -> dsl.insertInto(DSL.table("purchase"), DSL.field("id", Long.class)).values(id).execute());
	}

	/**
	 * Maps purchases.
	 */
	interface PurchaseMapper {

		@Insert("insert into purchase (id) values (#{id})")
		void insert(long id);

	}

	/**
	 * A purchase.
	 */
	@Entity
	@Table(name = "purchase")
	static class Purchase {

		@Id
		private long id;

		protected Purchase() {
		}

		Purchase(long id) {
			this.id = id;
		}

		long id() {
			return this.id;
		}

		@PostPersist
		void persisted() {
			whilePersisting.run();
		}

	}

}
