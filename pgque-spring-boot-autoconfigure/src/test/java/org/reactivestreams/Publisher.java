package org.reactivestreams;

/**
 * Stands for what the types of reactive libraries are, where there is none.
 *
 * @param <T> the type of the elements
 */
public interface Publisher<T> {

}
