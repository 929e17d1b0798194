/**
 * Figures measured side by side in one run. A benchmark prints; it never fails a build.
 */
@NullMarked
package io.pgque.benchmarks;

import org.jspecify.annotations.NullMarked;
