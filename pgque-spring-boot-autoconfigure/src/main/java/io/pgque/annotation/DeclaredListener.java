package io.pgque.annotation;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.adapter.ListenerMethod;

import org.springframework.core.MethodIntrospector;
import org.springframework.core.MethodIntrospector.MetadataLookup;
import org.springframework.core.annotation.AnnotatedElementUtils;

/**
 * A method that is to be a listener, with the annotation that says so.
 *
 * @param method the method as the class has it
 * @param annotation the annotation on the method or on its class
 * @param types the event types that the method handles, unresolved
 */
record DeclaredListener(Method method, PgqueListener annotation, String[] types) {

	/**
	 * Find the listeners of a class.
	 * @param type the class of a bean, behind any proxy
	 * @return the listeners, none when the class declares none
	 * @throws InvalidListenerException when annotations on class and methods don't fit
	 */
	static List<DeclaredListener> of(Class<?> type) {
		List<DeclaredListener> listeners = new ArrayList<>();
		methods(type, (method) -> {
			Set<PgqueListener> annotations = annotations(method);
			return annotations.isEmpty() ? null : annotations;
		}).forEach((method, annotations) -> annotations
			.forEach((annotation) -> listeners.add(new DeclaredListener(method, annotation, annotation.types()))));
		addHandlers(type, listeners);
		return listeners;
	}

	private static void addHandlers(Class<?> type, List<DeclaredListener> listeners) {
		Set<PgqueListener> annotations = AnnotatedElementUtils.findMergedRepeatableAnnotations(type,
				PgqueListener.class, PgqueListeners.class);
		Map<Method, PgqueHandler> handlers = methods(type,
				(method) -> AnnotatedElementUtils.findMergedAnnotation(method, PgqueHandler.class));
		check(type, annotations, handlers);
		for (PgqueListener annotation : annotations) {
			handlers
				.forEach((method, handler) -> listeners.add(new DeclaredListener(method, annotation, handler.types())));
		}
	}

	private static void check(Class<?> type, Set<PgqueListener> annotations, Map<Method, PgqueHandler> handlers) {
		for (Method method : handlers.keySet()) {
			if (annotations.isEmpty()) {
				throw new InvalidListenerException(
						"Method " + ListenerMethod.describe(method, type)
								+ " has @PgqueHandler, but its class has no @PgqueListener",
						"Annotate the class with @PgqueListener, or the method with it instead");
			}
			if (!annotations(method).isEmpty()) {
				throw new InvalidListenerException("Method " + ListenerMethod.describe(method, type)
						+ " has both @PgqueHandler and @PgqueListener", "Leave one of them");
			}
		}
		for (PgqueListener annotation : annotations) {
			if (handlers.isEmpty()) {
				throw new InvalidListenerException(
						"Class " + type.getName() + " has @PgqueListener, but no method with @PgqueHandler",
						"Annotate the methods that handle messages with @PgqueHandler");
			}
			if (annotation.types().length > 0) {
				throw new InvalidListenerException(
						"@PgqueListener on class " + type.getName() + " states 'types', which methods have",
						"State them at @PgqueHandler");
			}
		}
	}

	private static Set<PgqueListener> annotations(Method method) {
		return AnnotatedElementUtils.findMergedRepeatableAnnotations(method, PgqueListener.class, PgqueListeners.class);
	}

	private static <T> Map<Method, T> methods(Class<?> type, MetadataLookup<T> lookup) {
		return MethodIntrospector.selectMethods(type, lookup);
	}

}
