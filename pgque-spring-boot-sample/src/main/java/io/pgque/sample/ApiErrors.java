package io.pgque.sample;

import java.util.stream.Collectors;

import io.pgque.PgqueException;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;

import org.springframework.context.MessageSourceResolvable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.ProblemDetail;
import org.springframework.http.ResponseEntity;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.web.bind.MethodArgumentNotValidException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.request.WebRequest;
import org.springframework.web.method.annotation.HandlerMethodValidationException;
import org.springframework.web.servlet.mvc.method.annotation.ResponseEntityExceptionHandler;

/**
 * Tells clients what was wrong with their request, as problem details. Spring does most
 * of it; here are our own exceptions, and more words where Spring is short.
 */
@RestControllerAdvice
class ApiErrors extends ResponseEntityExceptionHandler {

	@ExceptionHandler
	ProblemDetail notFound(OrderNotFoundException ex) {
		return problem(HttpStatus.NOT_FOUND, ex.getMessage());
	}

	@ExceptionHandler
	ProblemDetail refused(OrderRefusedException ex) {
		return problem(HttpStatus.UNPROCESSABLE_CONTENT, ex.getMessage());
	}

	@Override
	protected @Nullable ResponseEntity<Object> handleMethodArgumentNotValid(MethodArgumentNotValidException ex,
			HttpHeaders headers, HttpStatusCode status, WebRequest request) {
		String detail = ex.getFieldErrors()
			.stream()
			.map((error) -> error.getField() + " " + error.getDefaultMessage())
			.sorted()
			.collect(Collectors.joining(", "));
		return handleExceptionInternal(ex, problem(status, detail), headers, status, request);
	}

	@Override
	protected @Nullable ResponseEntity<Object> handleHandlerMethodValidationException(
			HandlerMethodValidationException ex, HttpHeaders headers, HttpStatusCode status, WebRequest request) {
		String detail = ex.getParameterValidationResults()
			.stream()
			.map((result) -> result.getMethodParameter().getParameterName() + " "
					+ result.getResolvableErrors()
						.stream()
						.map(MessageSourceResolvable::getDefaultMessage)
						.collect(Collectors.joining(", ")))
			.collect(Collectors.joining(", "));
		return handleExceptionInternal(ex, problem(status, detail), headers, status, request);
	}

	@Override
	protected @Nullable ResponseEntity<Object> handleHttpMessageNotReadable(HttpMessageNotReadableException ex,
			HttpHeaders headers, HttpStatusCode status, WebRequest request) {
		String detail = (ex.getMostSpecificCause() instanceof JacksonException json) ? json.getOriginalMessage()
				: "The request needs a body";
		return handleExceptionInternal(ex, problem(status, detail), headers, status, request);
	}

	private static ProblemDetail problem(HttpStatusCode status, @Nullable String detail) {
		return ProblemDetail.forStatusAndDetail(status, (detail != null) ? detail : "");
	}

}
