package io.pgque.sample;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;

import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Condition;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.util.StringUtils;

/**
 * Starts a PostgreSQL for this application when {@code spring.datasource.url} names none:
 * nothing has to be installed to try the sample. An application of your own has no such
 * class; it has a database.
 */
@Configuration(proxyBeanMethods = false)
@Conditional(EmbeddedPostgresConfiguration.NoDatabaseConfigured.class)
class EmbeddedPostgresConfiguration {

	/**
	 * Stopped, and its files deleted, after everything that uses it.
	 */
	@Bean(destroyMethod = "close")
	EmbeddedPostgres embeddedPostgres() {
		try {
			// Among its kind, a server that outlived kill -9 is found and ended later.
			Path servers = Path.of(System.getProperty("java.io.tmpdir"), "embedded-pg");
			Files.createDirectories(servers);
			return EmbeddedPostgres.builder()
				.setDataDirectory(Files.createTempDirectory(servers, "sample-"))
				// The same everywhere, whatever LANG and LC_ALL say here.
				.setLocaleConfig("locale", "C")
				.setPGStartupWait(Duration.ofMinutes(1))
				// Otherwise it would go while the application is still closing.
				.setRegisterShutdownHook(false)
				.start();
		}
		catch (IOException | RuntimeException ex) {
			throw new IllegalStateException("No embedded PostgreSQL could be started. Its output is shown with "
					+ "--logging.level.io.zonky.test=info. To use a PostgreSQL of yours, set SPRING_DATASOURCE_URL, "
					+ "SPRING_DATASOURCE_USERNAME and SPRING_DATASOURCE_PASSWORD", ex);
		}
	}

	/**
	 * Spring Boot makes its data source from this instead of from properties.
	 */
	@Bean
	JdbcConnectionDetails embeddedPostgresConnectionDetails(EmbeddedPostgres postgres) {
		return new JdbcConnectionDetails() {

			@Override
			public String getUsername() {
				return "postgres";
			}

			@Override
			public String getPassword() {
				return "";
			}

			@Override
			public String getJdbcUrl() {
				return "jdbc:postgresql://localhost:" + postgres.getPort() + "/postgres";
			}

		};
	}

	/**
	 * Whether {@code spring.datasource.url} is missing.
	 */
	static class NoDatabaseConfigured implements Condition {

		@Override
		public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
			return !StringUtils.hasText(context.getEnvironment().getProperty("spring.datasource.url"));
		}

	}

}
