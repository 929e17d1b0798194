package io.pgque.boot.test;

import org.springframework.boot.test.autoconfigure.TestSliceTestContextBootstrapper;

/**
 * Makes the contexts of {@link PgqueTest}.
 */
class PgqueTestContextBootstrapper extends TestSliceTestContextBootstrapper<PgqueTest> {

}
