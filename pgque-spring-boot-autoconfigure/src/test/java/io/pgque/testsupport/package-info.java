/**
 * A real PostgreSQL for the tests: one server per test run, one database per test class.
 */
@NullMarked
package io.pgque.testsupport;

import org.jspecify.annotations.NullMarked;
