package io.pgque.listener;

import java.util.Arrays;
import java.util.Set;

import org.springframework.context.support.AbstractApplicationContext;

/**
 * Tells which handlers are stopping what they run in: their container, that of another
 * handler, the application or the JVM. Such a handler returns when that has stopped, so
 * nobody may wait for it meanwhile. It may be waiting itself where none of our code runs,
 * such as for another thread that closes the application; its stack is the only way to
 * know.
 */
final class StoppingHandlers {

	private static final Set<String> CONTEXT_METHODS = Set.of("close", "stop");

	private StoppingHandlers() {
	}

	/**
	 * Return whether none of the handlers returns before what they stop has stopped.
	 * @param handlers the threads of the handlers that run
	 * @return whether that is so; {@code false} when there are none
	 */
	static boolean areAll(Set<Thread> handlers) {
		return !handlers.isEmpty() && handlers.stream().allMatch(StoppingHandlers::isStopping);
	}

	private static boolean isStopping(Thread handler) {
		return Arrays.stream(handler.getStackTrace()).anyMatch(StoppingHandlers::stops);
	}

	private static boolean stops(StackTraceElement frame) {
		String type = frame.getClassName();
		String method = frame.getMethodName();
		return type.equals(DefaultPgqueMessageListenerContainer.class.getName()) && method.equals("stop")
				|| type.equals(AbstractApplicationContext.class.getName()) && CONTEXT_METHODS.contains(method)
				|| type.equals(Runtime.class.getName()) && method.equals("exit");
	}

}
