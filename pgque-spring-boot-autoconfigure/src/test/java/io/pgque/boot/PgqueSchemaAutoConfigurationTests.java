package io.pgque.boot;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;

import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import io.pgque.MissingPrivilegeException;
import io.pgque.PgqueSchemaException;
import io.pgque.core.PgqueTemplate;
import io.pgque.schema.PgqueSchema;
import io.pgque.testsupport.TestDatabase;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import org.springframework.beans.factory.BeanCreationException;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.flyway.autoconfigure.FlywayAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcTemplateAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.util.ClassUtils;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Tests for {@link PgqueSchemaAutoConfiguration}.
 */
class PgqueSchemaAutoConfigurationTests {

	private static final List<Class<?>> OURS = List.of(PgqueAutoConfiguration.class, PgqueSchemaAutoConfiguration.class,
			PgqueTickerAutoConfiguration.class);

	private TestDatabase database;

	private ApplicationContextRunner runner;

	@BeforeEach
	void createDatabase() {
		this.database = TestDatabase.empty();
		this.runner = new ApplicationContextRunner()
			.withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class,
					DataSourceTransactionManagerAutoConfiguration.class, JdbcTemplateAutoConfiguration.class))
			.withConfiguration(AutoConfigurations.of(OURS.toArray(Class<?>[]::new)))
			.withPropertyValues(this.database.springProperties());
	}

	@AfterEach
	void dropDatabase() {
		this.database.close();
	}

	private String version() {
		return this.database.value(String.class, "select pgque.version()");
	}

	private boolean isInstalled() {
		return this.database.value(Boolean.class, "select to_regnamespace('pgque') is not null");
	}

	@Test
	void schemaComesBeforeTheApplicationsOwnMigrations() {
		withFlyway().run((context) -> {
			assertThat(context).hasNotFailed().hasSingleBean(Flyway.class);
			assertThat(this.database.values(String.class, "select version from public.flyway_schema_history"))
				.containsExactly("1");
			assertThat(this.database.values(String.class,
					"select version from pgque.flyway_schema_history where version is not null and type = 'SQL'"))
				.startsWith("1");
			assertThat(this.database.values(String.class, "select queue_name from pgque.queue"))
				.containsExactly("from-migration");
			assertThat(context.getBeanFactory().getBeanDefinition("flyway").getDependsOn())
				.contains("pgqueSchemaInitializer");
			assertThat(context.getBeanFactory().getBeanDefinition("pgqueTemplate").getDependsOn())
				.contains("pgqueSchemaInitializer", "flywayInitializer");
			assertThat(context.getBeanFactory().getBeanDefinition("jdbcTemplate").getDependsOn())
				.contains("pgqueSchemaInitializer");
		});
		withFlyway().run((context) -> assertThat(context).hasNotFailed());
	}

	@Test
	void nothingOfTheApplicationsFlywayReachesOurs() {
		withFlyway().withPropertyValues("spring.flyway.table=app_history", "spring.flyway.placeholder-prefix=$$",
				"spring.flyway.placeholder-suffix=$$", "spring.flyway.target=1", "spring.flyway.out-of-order=true",
				"spring.flyway.schemas=app", "spring.flyway.default-schema=app", "spring.flyway.sql-migration-prefix=V",
				"spring.flyway.repeatable-sql-migration-prefix=X", "spring.flyway.baseline-on-migrate=true")
			.run((context) -> {
				assertThat(context).hasNotFailed();
				assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
				assertThat(this.database.values(String.class,
						"select version from pgque.flyway_schema_history where version is not null and type = 'SQL'"))
					.startsWith("1");
				assertThat(this.database.values(String.class, "select version from app.app_history where type = 'SQL'"))
					.containsExactly("1");
			});
	}

	private ApplicationContextRunner withFlyway() {
		return this.runner.withConfiguration(AutoConfigurations.of(FlywayAutoConfiguration.class))
			.withPropertyValues("spring.flyway.locations=classpath:io/pgque/boot/migration",
					"spring.flyway.placeholders.greeting=hello");
	}

	@Test
	void installsAlsoWhenTheApplicationsFlywayIsOff() {
		withFlyway().withPropertyValues("spring.flyway.enabled=false").run((context) -> {
			assertThat(context).hasNotFailed().doesNotHaveBean(Flyway.class);
			assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
		});
	}

	@Test
	void startsWithoutFlywayWhenTheSchemaIsThere() {
		this.runner.run((context) -> assertThat(context).hasNotFailed());
		this.runner.withClassLoader(new FilteredClassLoader("org.flywaydb"))
			.run((context) -> assertThat(context).hasNotFailed().hasSingleBean(PgqueTemplate.class));
	}

	@Test
	void modesDoWhatTheySay() {
		this.runner.withPropertyValues("pgque.schema.mode=none", "pgque.ticker.mode=off").run((context) -> {
			assertThat(context).hasNotFailed();
			assertThat(isInstalled()).isFalse();
		});
		this.runner.withPropertyValues("pgque.schema.mode=validate")
			.run((context) -> assertThat(context).getFailure()
				.rootCause()
				.isInstanceOf(PgqueSchemaException.class)
				.hasMessageContaining("missing or older"));
		this.runner.run((context) -> assertThat(isInstalled()).isTrue());
		this.runner.withPropertyValues("pgque.schema.mode=validate")
			.run((context) -> assertThat(context).hasNotFailed());
	}

	@Test
	void installsWithCredentialsOfItsOwn() {
		TestDatabase.LoginRole app = this.database.createLogin();
		TestDatabase.migrated().close();
		ApplicationContextRunner asApp = this.runner.withPropertyValues("spring.datasource.username=" + app.name(),
				"spring.datasource.password=" + app.password(), "pgque.ticker.mode=off");
		asApp.run((context) -> assertThat(context).getFailure()
			.isInstanceOf(BeanCreationException.class)
			.rootCause()
			.hasMessageContaining("may not create schemas"));
		asApp
			.withPropertyValues("pgque.schema.username=" + this.database.user(),
					"pgque.schema.password=" + this.database.password())
			.run((context) -> {
				assertThat(context).hasNotFailed();
				assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
			});
		asApp.run((context) -> assertThat(context).getFailure()
			.hasStackTraceContaining(MissingPrivilegeException.class.getName())
			.hasStackTraceContaining("pgque_reader"));
		asApp.withPropertyValues("pgque.schema.url=" + this.database.url(),
				"pgque.schema.username=" + this.database.user(), "pgque.schema.password=" + this.database.password())
			.run((context) -> assertThat(context).hasNotFailed());
	}

	@Test
	void anyNumberOfInstancesMayStartAtOnce() throws Exception {
		int instances = 8;
		CyclicBarrier start = new CyclicBarrier(instances);
		ExecutorService executor = Executors.newFixedThreadPool(instances);
		try {
			List<Future<?>> results = new ArrayList<>();
			for (int i = 0; i < instances; i++) {
				results.add(executor.submit(() -> {
					start.await();
					withFlyway().withPropertyValues("spring.datasource.hikari.maximum-pool-size=2")
						.run((context) -> assertThat(context).hasNotFailed());
					return null;
				}));
			}
			for (Future<?> result : results) {
				result.get();
			}
		}
		finally {
			executor.shutdownNow();
		}
		assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
	}

	@Test
	void poolHasToDoWhereItsAddressIsUnknown() {
		try (HikariDataSource pool = this.database.pool(3)) {
			new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(OURS.toArray(Class<?>[]::new)))
				.withBean(DataSource.class, () -> pool)
				.run((context) -> {
					assertThat(context).hasNotFailed();
					assertThat(version()).isEqualTo(PgqueSchema.RELEASE);
				});
		}
	}

	@Test
	void databaseOutOfReachIsTold() {
		this.runner
			.withPropertyValues("spring.datasource.url=jdbc:postgresql://localhost:1/nowhere",
					"spring.datasource.hikari.connection-timeout=300")
			.run((context) -> assertThat(context).getFailure()
				.rootCause()
				.satisfies((root) -> assertThat(context.getStartupFailure())
					.hasStackTraceContaining("Check that the database is running and that spring.datasource.url")));
	}

	@Test
	void poolThatIsTooSmallIsTold() {
		try (HikariDataSource pool = this.database.pool(1)) {
			pool.setConnectionTimeout(250);
			new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(OURS.toArray(Class<?>[]::new)))
				.withBean(DataSource.class, () -> pool)
				.run((context) -> assertThat(context).getFailure()
					.hasStackTraceContaining("Installing takes three connections at a time: set pgque.schema.url"));
		}
	}

	@Test
	void poolOfOneIsEnoughWhereItsAddressIsKnown() {
		this.runner.withPropertyValues("spring.datasource.hikari.maximum-pool-size=1").run((context) -> {
			assertThat(context).hasNotFailed();
			assertThat(context.getBean(JdbcTemplate.class).queryForObject("select pgque.version()", String.class))
				.isEqualTo(PgqueSchema.RELEASE);
		});
	}

	@Test
	void namesOfAutoConfigurationsThatComeBeforeExist() {
		for (Class<?> ours : OURS) {
			AutoConfiguration annotation = AnnotatedElementUtils.getMergedAnnotation(ours, AutoConfiguration.class);
			List<String> names = Arrays.asList(annotation.afterName());
			assertThat(names).contains("org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration",
					"org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration");
			Stream<String> ofThisBoot = names.stream()
				.filter((name) -> !name.startsWith("org.springframework.boot.autoconfigure."))
				// In the deprecated module for Jackson 2, which is not among our
				// dependencies.
				.filter((name) -> !name.contains(".jackson2."));
			assertThat(ofThisBoot).isNotEmpty().allMatch((name) -> ClassUtils.isPresent(name, null));
		}
	}

}
