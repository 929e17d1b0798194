/**
 * Installing, upgrading and recognising the engine's database schema.
 */
@NullMarked
package io.pgque.schema;

import org.jspecify.annotations.NullMarked;
