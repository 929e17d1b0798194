package kotlin.coroutines;

/**
 * Stands for the last parameter of each suspend function, where there is no Kotlin.
 *
 * @param <T> the type of the result
 */
public interface Continuation<T> {

	/**
	 * Resume.
	 * @param result the result
	 */
	void resumeWith(T result);

}
