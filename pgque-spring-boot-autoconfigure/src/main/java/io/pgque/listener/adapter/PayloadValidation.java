package io.pgque.listener.adapter;

import java.lang.annotation.Annotation;
import java.lang.reflect.AnnotatedParameterizedType;
import java.lang.reflect.AnnotatedType;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import org.springframework.core.MethodParameter;
import org.springframework.messaging.Message;
import org.springframework.messaging.handler.annotation.support.MethodArgumentNotValidException;
import org.springframework.validation.BeanPropertyBindingResult;
import org.springframework.validation.SmartValidator;
import org.springframework.validation.Validator;
import org.springframework.validation.annotation.ValidationAnnotationUtils;

/**
 * Validates the payload of a parameter, or each payload of its list, when an annotation
 * asks for it: one whose name begins with {@code Valid}, such as {@code @Valid} of
 * Jakarta Validation and Spring's {@code @Validated} with its groups.
 */
final class PayloadValidation {

	private final MethodParameter parameter;

	private final Validator validator;

	private final Object[] hints;

	private PayloadValidation(MethodParameter parameter, Validator validator, Object[] hints) {
		this.parameter = parameter;
		this.validator = validator;
		this.hints = hints;
	}

	/**
	 * Whether a parameter asks for validation.
	 */
	static boolean isAskedFor(MethodParameter parameter) {
		return hints(parameter) != null;
	}

	/**
	 * Return the validation of a parameter.
	 * @return the validation, {@code null} when the parameter doesn't ask for it
	 */
	static @Nullable PayloadValidation of(MethodParameter parameter, @Nullable Validator validator) {
		Object[] hints = hints(parameter);
		return (hints != null && validator != null) ? new PayloadValidation(parameter, validator, hints) : null;
	}

	private static Object @Nullable [] hints(MethodParameter parameter) {
		Stream<Annotation> annotations = Stream.concat(Stream.of(parameter.getParameterAnnotations()),
				Stream.of(elementAnnotations(parameter)));
		return annotations.map(ValidationAnnotationUtils::determineValidationHints)
			.filter((hints) -> hints != null)
			.findFirst()
			.orElse(null);
	}

	/**
	 * The annotations in {@code List<@Valid Order>}.
	 */
	private static Annotation[] elementAnnotations(MethodParameter parameter) {
		AnnotatedType type = parameter.getExecutable().getAnnotatedParameterTypes()[parameter.getParameterIndex()];
		return (type instanceof AnnotatedParameterizedType parameterized)
				? parameterized.getAnnotatedActualTypeArguments()[0].getAnnotations() : new Annotation[0];
	}

	/**
	 * Validate a payload.
	 * @throws MethodArgumentNotValidException when it is not valid; says what is wrong
	 */
	void validate(Object payload, Message<?> message) {
		String name = this.parameter.getParameterName();
		BeanPropertyBindingResult errors = new BeanPropertyBindingResult(payload, (name != null) ? name : "payload");
		if (this.hints.length > 0 && this.validator instanceof SmartValidator smart) {
			smart.validate(payload, errors, this.hints);
		}
		else if (this.validator.supports(payload.getClass())) {
			this.validator.validate(payload, errors);
		}
		if (errors.hasErrors()) {
			throw new MethodArgumentNotValidException(message, this.parameter, errors);
		}
	}

}
