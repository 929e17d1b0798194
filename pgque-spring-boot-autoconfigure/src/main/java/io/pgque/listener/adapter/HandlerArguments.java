package io.pgque.listener.adapter;

import java.lang.reflect.Type;

import io.pgque.support.converter.PgqueMessageConverter;
import org.jspecify.annotations.Nullable;

import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.MethodParameter;
import org.springframework.core.convert.support.DefaultConversionService;
import org.springframework.messaging.handler.annotation.support.HeaderMethodArgumentResolver;
import org.springframework.messaging.handler.annotation.support.HeadersMethodArgumentResolver;
import org.springframework.messaging.handler.invocation.HandlerMethodArgumentResolver;
import org.springframework.messaging.handler.invocation.MethodArgumentResolutionException;

/**
 * Makes the argument resolvers for the parameters of a handler method.
 */
final class HandlerArguments {

	private final PgqueMessageConverter converter;

	private final HandlerMethodArgumentResolver header;

	private final HandlerMethodArgumentResolver headers = new HeadersMethodArgumentResolver();

	HandlerArguments(PgqueMessageConverter converter, @Nullable ConfigurableBeanFactory beanFactory) {
		this.converter = converter;
		this.header = new HeaderMethodArgumentResolver(DefaultConversionService.getSharedInstance(), beanFactory);
	}

	/**
	 * Return what resolves a parameter, or one element of its list.
	 */
	HandlerArgument create(HandlerParameter parameter) {
		return switch (parameter.kind()) {
			case MESSAGE, MESSAGES -> HandledMessage::message;
			case ACKNOWLEDGMENT, BATCH -> HandledMessage::acknowledgment;
			case HEADER -> (message) -> resolve(this.header, parameter.parameter(), message);
			case HEADERS -> (message) -> resolve(this.headers, parameter.parameter(), message);
			case PAYLOAD, PAYLOADS -> (message) -> payload(parameter, message, parameter.required());
			case SPRING_MESSAGE, SPRING_MESSAGES ->
				(message) -> message.withPayload(required(payload(parameter, message, true)));
		};
	}

	private @Nullable Object payload(HandlerParameter parameter, HandledMessage message, boolean required) {
		Type type = parameter.payloadType();
		Object payload = this.converter.fromText(message.message(), (type != null) ? type : String.class);
		if (payload == null && required) {
			throw new MethodArgumentResolutionException(message.springMessage(), parameter.parameter(),
					"message " + message.message().id() + " of queue '" + message.message().queue()
							+ "' has no payload, and the parameter takes no null");
		}
		return payload;
	}

	private static Object required(@Nullable Object payload) {
		if (payload == null) {
			throw new IllegalStateException("No payload");
		}
		return payload;
	}

	/**
	 * What doesn't fit a parameter fits it no better next time.
	 */
	private static @Nullable Object resolve(HandlerMethodArgumentResolver resolver, MethodParameter parameter,
			HandledMessage message) throws Exception {
		try {
			return resolver.resolveArgument(parameter, message.springMessage());
		}
		catch (RuntimeException ex) {
			MethodArgumentResolutionException failure = new MethodArgumentResolutionException(message.springMessage(),
					parameter, String.valueOf(ex.getMessage()));
			failure.initCause(ex);
			throw failure;
		}
	}

}
