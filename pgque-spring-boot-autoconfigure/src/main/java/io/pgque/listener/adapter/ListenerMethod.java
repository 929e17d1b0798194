package io.pgque.listener.adapter;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.support.converter.PgqueMessageConverter;
import org.jspecify.annotations.Nullable;

import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.MethodParameter;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.SynthesizingMethodParameter;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.handler.invocation.MethodArgumentResolutionException;
import org.springframework.scheduling.annotation.Async;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * A method of a bean that handles messages. Its signature is checked when this is
 * created.
 *
 * @since 0.1.0
 */
public final class ListenerMethod {

	private final Supplier<Object> bean;

	private final Method method;

	private volatile Method invocable;

	private final String description;

	private final List<HandlerParameter> parameters;

	private ListenerMethod(Supplier<Object> bean, Method method, String description,
			List<HandlerParameter> parameters) {
		this.bean = bean;
		this.method = method;
		this.invocable = method;
		this.description = description;
		this.parameters = parameters;
	}

	/**
	 * Look at a method.
	 * @param bean gives the bean for each call, possibly a proxy
	 * @param method the method as the target class has it, with its annotations and types
	 * @param targetClass the class of the bean, behind any proxy
	 * @return the listener method
	 * @throws InvalidListenerException when its signature can't work
	 */
	public static ListenerMethod of(Supplier<Object> bean, Method method, Class<?> targetClass) {
		String description = describe(method, targetClass);
		checkReturn(method, targetClass, description);
		List<HandlerParameter> parameters = new ArrayList<>();
		for (int i = 0; i < method.getParameterCount(); i++) {
			parameters.add(parameter(method, i, targetClass, description));
		}
		if (parameters.stream().filter((parameter) -> parameter.kind() == HandlerParameter.Kind.PAYLOAD).count() > 1) {
			throw new InvalidListenerException(
					"Listener method " + description + " has more than one parameter for the payload",
					"Leave one; mark the others with @Header, or take the whole PgqueMessage");
		}
		ReflectionUtils.makeAccessible(method);
		return new ListenerMethod(bean, method, description, parameters);
	}

	/**
	 * Check that the method can be called on a bean of this class, which may be a proxy.
	 * @param beanClass the class
	 * @throws InvalidListenerException when a proxy doesn't have the method
	 */
	public void checkInvocableOn(Class<?> beanClass) {
		try {
			AopUtils.selectInvocableMethod(this.method, beanClass);
		}
		catch (IllegalStateException ex) {
			throw new InvalidListenerException(
					"Listener method " + this.description + " can't be called on the proxy of its bean: "
							+ ex.getMessage(),
					"Declare the method in an interface of the bean, make it visible to the proxy, or proxy the class",
					ex);
		}
	}

	private static HandlerParameter parameter(Method method, int index, Class<?> targetClass, String description) {
		MethodParameter parameter = new SynthesizingMethodParameter(method, index).withContainingClass(targetClass);
		parameter.initParameterNameDiscovery(new DefaultParameterNameDiscoverer());
		try {
			return HandlerParameter.of(parameter, targetClass);
		}
		catch (HandlerParameter.UnsupportedParameterException ex) {
			throw new InvalidListenerException(
					"Parameter " + (index + 1) + " of listener method " + description + " can't be filled: "
							+ ex.problem(),
					"A listener method takes the payload, a PgqueMessage, a Message, @Header and @Headers parameters",
					ex);
		}
	}

	private static void checkReturn(Method method, Class<?> targetClass, String description) {
		Class<?> type = method.getReturnType();
		Set<Class<?>> interfaces = ClassUtils.getAllInterfacesForClassAsSet(type);
		if (interfaces.contains(Future.class) || interfaces.contains(CompletionStage.class)
				|| interfaces.contains(Flow.Publisher.class)
				|| interfaces.stream()
					.anyMatch((candidate) -> candidate.getName().equals("org.reactivestreams.Publisher"))
				|| AnnotatedElementUtils.hasAnnotation(method, Async.class)
				|| AnnotatedElementUtils.hasAnnotation(targetClass, Async.class)) {
			throw new InvalidListenerException(
					"Listener method " + description + " returns before its work is done: its messages would be "
							+ "settled before they are handled, and lost when that fails",
					"Do the work in the method itself, without @Async, and return nothing");
		}
		if (AnnotatedElementUtils.hasAnnotation(method, SendTo.class)) {
			throw new InvalidListenerException(
					"Listener method " + description + " has @SendTo, but what it returns is not sent",
					"Remove @SendTo, and send with PgqueTemplate");
		}
	}

	private static String describe(Method method, Class<?> targetClass) {
		return targetClass.getName() + "." + method.getName()
				+ Arrays.stream(method.getGenericParameterTypes())
					.map((type) -> (type instanceof Class<?> simple) ? simple.getSimpleName() : type.getTypeName())
					.collect(Collectors.joining(", ", "(", ")"));
	}

	/**
	 * Return how messages name the method.
	 * @return class, name and parameter types
	 */
	public String getDescription() {
		return this.description;
	}

	/**
	 * Return the type to which payloads are converted.
	 * @return the type, or {@code null} when the method takes payloads of any kind
	 */
	public @Nullable Type getPayloadType() {
		return this.parameters.stream()
			.map(HandlerParameter::payloadType)
			.filter((type) -> type != null && type != Object.class)
			.findFirst()
			.orElse(null);
	}

	/**
	 * Create the listener that calls the method.
	 * @param converter converts payloads
	 * @param beanFactory resolves placeholders and expressions in annotations of
	 * parameters
	 * @return the listener
	 */
	public PgqueMessageListener createListener(PgqueMessageConverter converter,
			@Nullable ConfigurableBeanFactory beanFactory) {
		HandlerArguments resolvers = new HandlerArguments(converter, beanFactory);
		HandlerArgument[] arguments = this.parameters.stream().map(resolvers::create).toArray(HandlerArgument[]::new);
		return (message) -> invoke(message, arguments);
	}

	private void invoke(PgqueMessage message, HandlerArgument[] arguments) throws Exception {
		HandledMessage handled = new HandledMessage(message);
		@Nullable Object[] values = new Object[arguments.length];
		for (int i = 0; i < arguments.length; i++) {
			values[i] = arguments[i].resolve(handled);
		}
		Object target = this.bean.get();
		try {
			invocableOn(target).invoke(target, values);
		}
		catch (InvocationTargetException ex) {
			rethrow(ex.getTargetException());
		}
		catch (IllegalArgumentException ex) {
			if (this.parameters.isEmpty()) {
				throw ex;
			}
			// A value that the parameter doesn't take, and won't the next time.
			MethodArgumentResolutionException failure = new MethodArgumentResolutionException(handled.springMessage(),
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

	private static void rethrow(Throwable failure) throws Exception {
		if (failure instanceof Error error) {
			throw error;
		}
		throw (Exception) failure;
	}

	@Override
	public String toString() {
		return this.description;
	}

}
