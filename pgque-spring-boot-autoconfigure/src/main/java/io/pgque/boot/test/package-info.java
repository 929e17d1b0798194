/**
 * Spring Boot's side of testing: the slice for listeners, and the beans that tests
 * inject.
 */
@NullMarked
package io.pgque.boot.test;

import org.jspecify.annotations.NullMarked;
