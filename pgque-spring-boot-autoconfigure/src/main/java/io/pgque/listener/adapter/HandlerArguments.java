package io.pgque.listener.adapter;

import java.lang.reflect.Type;

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

	private final HandlerServices services;

	private final HandlerMethodArgumentResolver header;

	private final HandlerMethodArgumentResolver headers = new HeadersMethodArgumentResolver();

	HandlerArguments(HandlerServices services, @Nullable ConfigurableBeanFactory beanFactory) {
		this.services = services;
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
			case PAYLOAD, PAYLOADS -> payload(parameter, parameter.required());
			case SPRING_MESSAGE, SPRING_MESSAGES -> {
				HandlerArgument payload = payload(parameter, true);
				yield (message) -> message.withPayload(required(payload.resolve(message)));
			}
		};
	}

	private HandlerArgument payload(HandlerParameter parameter, boolean required) {
		PayloadValidation validation = PayloadValidation.of(parameter.parameter(), this.services.validator());
		return (message) -> {
			Object payload = convert(parameter, message, required);
			if (payload != null && validation != null) {
				validation.validate(payload, message.springMessage());
			}
			return payload;
		};
	}

	private @Nullable Object convert(HandlerParameter parameter, HandledMessage message, boolean required) {
		Type type = parameter.payloadType();
		Object payload = this.services.converter().fromText(message.message(), (type != null) ? type : String.class);
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
