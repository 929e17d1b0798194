package io.pgque.listener.adapter;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import org.springframework.aop.support.AopUtils;
import org.springframework.messaging.handler.invocation.MethodArgumentResolutionException;
import org.springframework.util.ReflectionUtils;

/**
 * Calls a handler method on its bean.
 */
final class MethodInvoker {

	private final Supplier<Object> bean;

	private final Method method;

	private volatile Method invocable;

	private final String description;

	private final List<HandlerParameter> parameters;

	MethodInvoker(Supplier<Object> bean, Method method, String description, List<HandlerParameter> parameters) {
		this.bean = bean;
		this.method = method;
		this.invocable = method;
		this.description = description;
		this.parameters = parameters;
	}

	/**
	 * Call the method.
	 * @param values its arguments
	 * @param message the message, or the first of several, to be named in failures
	 * @return what it returns
	 * @throws Exception what it throws, as it is
	 */
	@Nullable Object invoke(@Nullable Object[] values, HandledMessage message) throws Exception {
		Object target = this.bean.get();
		try {
			return invocableOn(target).invoke(target, values);
		}
		catch (InvocationTargetException ex) {
			Throwable failure = ex.getTargetException();
			if (failure instanceof Error error) {
				throw error;
			}
			throw (Exception) failure;
		}
		catch (IllegalArgumentException ex) {
			if (this.parameters.isEmpty()) {
				throw ex;
			}
			// A value that the parameter doesn't take, and won't the next time.
			MethodArgumentResolutionException failure = new MethodArgumentResolutionException(message.springMessage(),
					this.parameters.get(0).parameter(), "can't call " + this.description + " with arguments of types "
							+ typesOf(values) + ": " + ex.getMessage());
			failure.initCause(ex);
			throw failure;
		}
	}

	/**
	 * Behind a JDK proxy, the method of an interface has to be called.
	 */
	private Method invocableOn(Object target) {
		Method candidate = this.invocable;
		if (!candidate.getDeclaringClass().isInstance(target)) {
			candidate = AopUtils.selectInvocableMethod(this.method, target.getClass());
			ReflectionUtils.makeAccessible(candidate);
			this.invocable = candidate;
		}
		return candidate;
	}

	private static String typesOf(@Nullable Object[] values) {
		return Arrays.stream(values)
			.map((value) -> (value != null) ? value.getClass().getName() : "null")
			.collect(Collectors.joining(", ", "[", "]"));
	}

}
