/**
 * Auto-configuration for Spring Boot.
 */
@NullMarked
package io.pgque.boot;

import org.jspecify.annotations.NullMarked;
