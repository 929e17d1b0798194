package io.pgque.listener.adapter;

import java.lang.annotation.Annotation;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

import io.pgque.core.PgqueMessage;
import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.core.GenericTypeResolver;
import org.springframework.core.MethodParameter;
import org.springframework.messaging.Message;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.support.MessageHeaderAccessor;

/**
 * What a parameter of a handler method takes.
 *
 * @param parameter the parameter
 * @param kind what it takes
 * @param payloadType the type to which the payload is converted, {@code null} when the
 * parameter does without, or takes the text as it is
 * @param required whether it can't be {@code null}
 */
record HandlerParameter(MethodParameter parameter, Kind kind, @Nullable Type payloadType, boolean required) {

	/**
	 * Look at a parameter.
	 * @throws UnsupportedParameterException when a message holds nothing of the kind
	 */
	static HandlerParameter of(MethodParameter parameter, Class<?> targetClass) {
		Class<?> type = parameter.getParameterType();
		if (parameter.hasParameterAnnotation(Header.class)) {
			return new HandlerParameter(parameter, Kind.HEADER, null, false);
		}
		if (parameter.hasParameterAnnotation(Headers.class)) {
			if (!Map.class.isAssignableFrom(type)) {
				throw new UnsupportedParameterException("@Headers needs a Map");
			}
			return new HandlerParameter(parameter, Kind.HEADERS, null, false);
		}
		if (type == MessageHeaders.class || MessageHeaderAccessor.class.isAssignableFrom(type)) {
			return new HandlerParameter(parameter, Kind.HEADERS, null, false);
		}
		if (type == PgqueMessage.class || type == ReceivedMessage.class) {
			return new HandlerParameter(parameter, Kind.MESSAGE, null, true);
		}
		Type generic = GenericTypeResolver.resolveType(parameter.getGenericParameterType(), targetClass);
		if (type == Message.class) {
			return new HandlerParameter(parameter, Kind.SPRING_MESSAGE, payloadOfMessage(generic), true);
		}
		return payload(parameter, type, generic);
	}

	private static HandlerParameter payload(MethodParameter parameter, Class<?> type, Type generic) {
		refuse(type);
		for (Annotation annotation : parameter.getParameterAnnotations()) {
			if (annotation.annotationType().getSimpleName().startsWith("Valid")) {
				throw new UnsupportedParameterException("payloads are not validated before the method is called; "
						+ "validate within the method instead of @" + annotation.annotationType().getSimpleName());
			}
		}
		Payload payload = parameter.getParameterAnnotation(Payload.class);
		if (payload != null && !payload.expression().isEmpty()) {
			throw new UnsupportedParameterException("@Payload takes no expression here");
		}
		boolean required = (payload == null || payload.required()) && !parameter.isOptional();
		return new HandlerParameter(parameter, Kind.PAYLOAD, generic, required || type.isPrimitive());
	}

	private static void refuse(Class<?> type) {
		if (type.isAssignableFrom(java.util.List.class) && Iterable.class.isAssignableFrom(type)) {
			throw new UnsupportedParameterException("messages are handled one at a time, not as a list of them; for a "
					+ "payload that is a JSON array, take an array");
		}
		if (Stream.class.isAssignableFrom(type)) {
			throw new UnsupportedParameterException("messages are handled one at a time, not as a stream of them");
		}
		if (type == Optional.class) {
			throw new UnsupportedParameterException(
					"for a payload that may be missing, use @Payload(required = false)");
		}
		if (Message.class.isAssignableFrom(type) || ReceivedMessage.class.isAssignableFrom(type)) {
			throw new UnsupportedParameterException("of message types, take PgqueMessage or Spring's Message");
		}
		if (type.getName().equals("kotlin.coroutines.Continuation")) {
			throw new UnsupportedParameterException("suspend functions are not supported");
		}
	}

	private static @Nullable Type payloadOfMessage(Type generic) {
		if (!(generic instanceof ParameterizedType parameterized)) {
			return null;
		}
		Type argument = parameterized.getActualTypeArguments()[0];
		Type bound = (argument instanceof WildcardType wildcard) ? wildcard.getUpperBounds()[0] : argument;
		return (bound != Object.class) ? bound : null;
	}

	/**
	 * What a parameter takes.
	 */
	enum Kind {

		/**
		 * The converted payload.
		 */
		PAYLOAD,

		/**
		 * The message as it was received.
		 */
		MESSAGE,

		/**
		 * A Spring message with the converted payload.
		 */
		SPRING_MESSAGE,

		/**
		 * One header.
		 */
		HEADER,

		/**
		 * All headers.
		 */
		HEADERS

	}

	/**
	 * A message holds nothing of the kind.
	 */
	static final class UnsupportedParameterException extends RuntimeException {

		private static final long serialVersionUID = 1L;

		private final String problem;

		private UnsupportedParameterException(String problem) {
			super(problem);
			this.problem = problem;
		}

		String problem() {
			return this.problem;
		}

	}

}
