package io.pgque.boot;

import java.util.Set;

import org.springframework.boot.sql.init.dependency.AbstractBeansOfTypeDatabaseInitializerDetector;

/**
 * Makes the engine's schema come before the application's own migrations, which may
 * create queues.
 */
class PgqueDatabaseInitializerDetector extends AbstractBeansOfTypeDatabaseInitializerDetector {

	@Override
	protected Set<Class<?>> getDatabaseInitializerBeanTypes() {
		return Set.of(PgqueSchemaInitializer.class);
	}

	@Override
	public int getOrder() {
		// Flyway's detectors have 0 and 1.
		return -100;
	}

}
