package io.pgque.listener.adapter;

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

import io.pgque.listener.GenericPgqueListener;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.PgqueAcknowledgingMessageListener;
import io.pgque.listener.PgqueMessageListener;
import io.pgque.listener.PgqueReplyingMessageListener;
import org.jspecify.annotations.Nullable;

import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.MethodParameter;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.SynthesizingMethodParameter;
import org.springframework.messaging.handler.annotation.SendTo;
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

	private final String description;

	private final List<HandlerParameter> parameters;

	private final @Nullable String replyTo;

	private ListenerMethod(Supplier<Object> bean, Method method, String description, List<HandlerParameter> parameters,
			@Nullable String replyTo) {
		this.bean = bean;
		this.method = method;
		this.description = description;
		this.parameters = parameters;
		this.replyTo = replyTo;
	}

	/**
	 * Look at a method.
	 * @param bean gives the bean for each call, possibly a proxy
	 * @param method the method as the target class has it, with its annotations and types
	 * @param targetClass the class of the bean, behind any proxy
	 * @param batch whether the method takes several messages at a time, {@code null} to
	 * tell by its parameters
	 * @return the listener method
	 * @throws InvalidListenerException when its signature can't work
	 */
	public static ListenerMethod of(Supplier<Object> bean, Method method, Class<?> targetClass,
			@Nullable Boolean batch) {
		String description = describe(method, targetClass);
		checkReturn(method, targetClass, description);
		List<MethodParameter> declared = parameters(method, targetClass);
		boolean several = (batch != null) ? batch : declared.stream().anyMatch(HandlerParameter::takesSeveral);
		List<HandlerParameter> parameters = new ArrayList<>();
		for (MethodParameter parameter : declared) {
			parameters.add(parameter(parameter, targetClass, several, description));
		}
		checkBatch(parameters, several, description);
		if (parameters.stream().filter((parameter) -> parameter.kind() == HandlerParameter.Kind.PAYLOAD).count() > 1) {
			throw new InvalidListenerException(
					"Listener method " + description + " has more than one parameter for the payload",
					"Leave one; mark the others with @Header, or take the whole PgqueMessage");
		}
		ReflectionUtils.makeAccessible(method);
		return new ListenerMethod(bean, method, description, parameters,
				replyTo(method, targetClass, several, description));
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

	private static List<MethodParameter> parameters(Method method, Class<?> targetClass) {
		List<MethodParameter> parameters = new ArrayList<>();
		for (int i = 0; i < method.getParameterCount(); i++) {
			MethodParameter parameter = new SynthesizingMethodParameter(method, i).withContainingClass(targetClass);
			parameter.initParameterNameDiscovery(new DefaultParameterNameDiscoverer());
			parameters.add(parameter);
		}
		return parameters;
	}

	private static HandlerParameter parameter(MethodParameter parameter, Class<?> targetClass, boolean several,
			String description) {
		try {
			return HandlerParameter.of(parameter, targetClass, several);
		}
		catch (HandlerParameter.UnsupportedParameterException ex) {
			throw new InvalidListenerException(
					"Parameter " + (parameter.getParameterIndex() + 1) + " of listener method " + description
							+ " can't be filled: " + ex.problem(),
					"A listener method takes the payload, a PgqueMessage, a Message, @Header and @Headers parameters; "
							+ "or lists of payloads, PgqueMessages or Messages, and a PgqueBatch",
					ex);
		}
	}

	private static void checkBatch(List<HandlerParameter> parameters, boolean several, String description) {
		if (several && parameters.stream().noneMatch((parameter) -> parameter.kind().takesSeveral())) {
			throw new InvalidListenerException(
					"Listener method " + description + " has no parameter for several messages, but 'batch' is true",
					"Take a List or a PgqueBatch, or leave 'batch' out");
		}
		for (HandlerParameter parameter : parameters) {
			if (several && !parameter.kind().isForSeveral()) {
				throw new InvalidListenerException(
						"Listener method " + description + " takes several messages at a time, but its parameter "
								+ (parameter.parameter().getParameterIndex() + 1) + " is about a single one",
						"Take lists, a PgqueBatch and an Acknowledgment only; or set 'batch' to false if the list "
								+ "is the payload of one message");
			}
			if (!several && parameter.kind() == HandlerParameter.Kind.BATCH) {
				throw new InvalidListenerException(
						"Listener method " + description + " takes a PgqueBatch, but 'batch' is false",
						"Set 'batch' to true, or leave it out");
			}
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
	}

	private static @Nullable String replyTo(Method method, Class<?> targetClass, boolean several, String description) {
		SendTo annotation = AnnotatedElementUtils.findMergedAnnotation(method, SendTo.class);
		if (annotation == null && method.getReturnType() != void.class) {
			annotation = AnnotatedElementUtils.findMergedAnnotation(targetClass, SendTo.class);
		}
		if (annotation == null) {
			return null;
		}
		if (method.getReturnType() == void.class || several) {
			throw new InvalidListenerException(
					"Listener method " + description + " has @SendTo, but "
							+ (several ? "takes several messages at a time" : "returns nothing"),
					"Remove @SendTo, or return the reply to one message");
		}
		if (annotation.value().length != 1) {
			throw new InvalidListenerException(
					"@SendTo of listener method " + description + " names " + annotation.value().length + " queues",
					"Name one");
		}
		return annotation.value()[0];
	}

	/**
	 * Return how messages name a method.
	 * @param method the method
	 * @param targetClass the class of its bean, behind any proxy
	 * @return class, name and parameter types
	 */
	public static String describe(Method method, Class<?> targetClass) {
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
	 * Return whether the method takes several messages at a time.
	 * @return whether it does
	 */
	public boolean isBatch() {
		return this.parameters.stream().anyMatch((parameter) -> parameter.kind().takesSeveral());
	}

	/**
	 * Return whether the method can acknowledge.
	 * @return whether a parameter of it is an {@link io.pgque.listener.Acknowledgment} or
	 * a {@link io.pgque.listener.PgqueBatch}
	 */
	public boolean isAcknowledging() {
		return this.parameters.stream()
			.anyMatch((parameter) -> parameter.kind() == HandlerParameter.Kind.ACKNOWLEDGMENT
					|| parameter.kind() == HandlerParameter.Kind.BATCH);
	}

	/**
	 * Return where the method says that its return value is to be sent.
	 * @return the value of {@link SendTo @SendTo}, unresolved, or {@code null} when it
	 * has none
	 */
	public @Nullable String getReplyTo() {
		return this.replyTo;
	}

	/**
	 * Create the listener that calls the method.
	 * @param services what it needs besides messages
	 * @param beanFactory resolves placeholders and expressions in annotations of
	 * parameters
	 * @param replyQueue the queue to which the return value is sent, {@code null} when it
	 * isn't
	 * @return the listener
	 * @throws InvalidListenerException when payloads are to be validated and nothing does
	 */
	public GenericPgqueListener createListener(HandlerServices services, @Nullable ConfigurableBeanFactory beanFactory,
			@Nullable String replyQueue) {
		if (services.validator() == null) {
			checkNotValidated();
		}
		HandlerArguments resolvers = new HandlerArguments(services, beanFactory);
		MethodInvoker invoker = new MethodInvoker(this.bean, this.method, this.description, this.parameters);
		if (isBatch()) {
			return new BatchMethodListener(invoker, this.parameters, resolvers);
		}
		HandlerArgument[] arguments = this.parameters.stream().map(resolvers::create).toArray(HandlerArgument[]::new);
		if (replyQueue != null) {
			ReplyFactory replies = new ReplyFactory(services, replyQueue);
			return (PgqueReplyingMessageListener) (message, acknowledgment) -> replies
				.create(invoke(invoker, arguments, new HandledMessage(message, acknowledgment)), message);
		}
		if (isAcknowledging()) {
			return (PgqueAcknowledgingMessageListener) (message, acknowledgment) -> invoke(invoker, arguments,
					new HandledMessage(message, acknowledgment));
		}
		return (PgqueMessageListener) (message) -> invoke(invoker, arguments, new HandledMessage(message, null));
	}

	private void checkNotValidated() {
		for (HandlerParameter parameter : this.parameters) {
			if (PayloadValidation.isAskedFor(parameter.parameter())) {
				throw new InvalidListenerException(
						"Parameter " + (parameter.parameter().getParameterIndex() + 1) + " of listener method "
								+ this.description + " is to be validated, but there is no Validator",
						"Add spring-boot-starter-validation, or set the validator of the container factory");
			}
		}
	}

	private static @Nullable Object invoke(MethodInvoker invoker, HandlerArgument[] arguments, HandledMessage message)
			throws Exception {
		@Nullable Object[] values = new Object[arguments.length];
		for (int i = 0; i < arguments.length; i++) {
			values[i] = arguments[i].resolve(message);
		}
		return invoker.invoke(values, message);
	}

	@Override
	public String toString() {
		return this.description;
	}

}
