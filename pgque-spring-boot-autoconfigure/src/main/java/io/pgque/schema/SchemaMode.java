package io.pgque.schema;

/**
 * What happens to the engine's schema when an application starts.
 *
 * @since 0.1.0
 */
public enum SchemaMode {

	/**
	 * It is installed or upgraded.
	 */
	MIGRATE,

	/**
	 * It is only checked.
	 */
	VALIDATE,

	/**
	 * Nothing: it is the operator's business.
	 */
	NONE

}
