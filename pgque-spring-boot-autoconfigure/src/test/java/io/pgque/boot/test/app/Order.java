package io.pgque.boot.test.app;

/**
 * What is ordered.
 */
record Order(int id) {
}
