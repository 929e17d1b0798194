package io.pgque.listener.adapter;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.lang.reflect.WildcardType;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

import io.pgque.core.PgqueMessage;
import io.pgque.listener.Acknowledgment;
import io.pgque.listener.PgqueBatch;
import io.pgque.support.ReceivedMessage;
import org.jspecify.annotations.Nullable;

import org.springframework.core.GenericTypeResolver;
import org.springframework.core.MethodParameter;
import org.springframework.core.ResolvableType;
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
	 * @param batch whether a list takes several messages; otherwise it is a payload
	 * @throws UnsupportedParameterException when a message holds nothing of the kind
	 */
	static HandlerParameter of(MethodParameter parameter, Class<?> targetClass, boolean batch) {
		Class<?> type = parameter.getParameterType();
		if (type == Acknowledgment.class) {
			return new HandlerParameter(parameter, Kind.ACKNOWLEDGMENT, null, true);
		}
		if (type == PgqueBatch.class) {
			return new HandlerParameter(parameter, Kind.BATCH, null, true);
		}
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
		if (batch && isList(type)) {
			return list(parameter, generic);
		}
		return payload(parameter, type, generic);
	}

	private static HandlerParameter payload(MethodParameter parameter, Class<?> type, Type generic) {
		refuse(type);
		Payload payload = parameter.getParameterAnnotation(Payload.class);
		refuseExpression(parameter);
		boolean required = (payload == null || payload.required()) && !parameter.isOptional();
		return new HandlerParameter(parameter, Kind.PAYLOAD, generic, required || type.isPrimitive());
	}

	private static void refuseExpression(MethodParameter parameter) {
		Payload payload = parameter.getParameterAnnotation(Payload.class);
		if (payload != null && !payload.expression().isEmpty()) {
			throw new UnsupportedParameterException("@Payload takes no expression here");
		}
	}

	private static void refuse(Class<?> type) {
		if (Stream.class.isAssignableFrom(type)) {
			throw new UnsupportedParameterException("several messages come as a List, not as a stream");
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

	/**
	 * Whether a parameter, as it looks, takes several messages.
	 */
	static boolean takesSeveral(MethodParameter parameter) {
		Class<?> type = parameter.getParameterType();
		return type == PgqueBatch.class || (isList(type) && !parameter.hasParameterAnnotation(Header.class)
				&& !parameter.hasParameterAnnotation(Headers.class));
	}

	private static boolean isList(Class<?> type) {
		return type.isAssignableFrom(List.class) && Iterable.class.isAssignableFrom(type);
	}

	private static HandlerParameter list(MethodParameter parameter, Type generic) {
		Type element = (generic instanceof ParameterizedType parameterized) ? parameterized.getActualTypeArguments()[0]
				: Object.class;
		if (element instanceof WildcardType wildcard) {
			element = wildcard.getUpperBounds()[0];
		}
		Class<?> elementClass = ResolvableType.forType(element).resolve(Object.class);
		if (elementClass == PgqueMessage.class || elementClass == ReceivedMessage.class) {
			return new HandlerParameter(parameter, Kind.MESSAGES, null, true);
		}
		if (elementClass == Message.class) {
			return new HandlerParameter(parameter, Kind.SPRING_MESSAGES, payloadOfMessage(element), true);
		}
		refuse(elementClass);
		refuseExpression(parameter);
		return new HandlerParameter(parameter, Kind.PAYLOADS, (element != Object.class) ? element : null, true);
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
		HEADERS,

		/**
		 * Through which messages are acknowledged.
		 */
		ACKNOWLEDGMENT,

		/**
		 * Several messages, and their outcomes.
		 */
		BATCH,

		/**
		 * The converted payloads of several messages.
		 */
		PAYLOADS,

		/**
		 * Several messages as they were received.
		 */
		MESSAGES,

		/**
		 * Several Spring messages with the converted payloads.
		 */
		SPRING_MESSAGES;

		/**
		 * Whether a parameter of the kind has a place in a method that takes several
		 * messages.
		 */
		boolean isForSeveral() {
			return this == ACKNOWLEDGMENT || takesSeveral();
		}

		/**
		 * Whether a parameter of the kind takes several messages.
		 */
		boolean takesSeveral() {
			return this == BATCH || this == PAYLOADS || this == MESSAGES || this == SPRING_MESSAGES;
		}

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
