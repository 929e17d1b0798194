/**
 * The exceptions that PgQue throws at an application.
 */
@NullMarked
package io.pgque;

import org.jspecify.annotations.NullMarked;
