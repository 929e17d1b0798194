package io.pgque.boot;

import io.pgque.schema.PgqueSchemaMigrator;
import io.pgque.schema.SchemaMode;

import org.springframework.beans.factory.InitializingBean;

/**
 * Brings the engine's schema to the state that the application needs, before anything
 * uses the database.
 *
 * @since 0.1.0
 */
public class PgqueSchemaInitializer implements InitializingBean {

	private final PgqueSchemaMigrator migrator;

	private final SchemaMode mode;

	/**
	 * Creates an initializer.
	 * @param migrator does the work
	 * @param mode which work
	 */
	public PgqueSchemaInitializer(PgqueSchemaMigrator migrator, SchemaMode mode) {
		this.migrator = migrator;
		this.mode = mode;
	}

	@Override
	public void afterPropertiesSet() {
		switch (this.mode) {
			case MIGRATE -> this.migrator.migrate();
			case VALIDATE -> this.migrator.validate();
			case NONE -> {
			}
		}
	}

}
