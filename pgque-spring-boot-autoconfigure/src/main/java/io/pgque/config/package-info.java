/**
 * Endpoints, the registry and the factory of listener containers.
 */
@NullMarked
package io.pgque.config;

import org.jspecify.annotations.NullMarked;
