package io.pgque.core;

import java.util.Collection;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import org.springframework.util.ClassUtils;

/**
 * Takes the type that {@link PgqueEvent} states, or the simple name of an application's
 * own class as event type, and {@value PgqueEventTypeResolver#DEFAULT_TYPE} for strings,
 * bytes, maps, collections, JSON trees and whatever else comes from the JDK.
 *
 * @since 0.1.0
 */
public class SimpleEventTypeResolver implements PgqueEventTypeResolver {

	@Override
	public String resolve(@Nullable Class<?> payloadClass) {
		String stated = (payloadClass != null) ? PgqueEvents.type(payloadClass) : null;
		if (stated != null) {
			return stated;
		}
		Class<?> type = (payloadClass != null) ? named(ClassUtils.getUserClass(payloadClass)) : null;
		return (type == null || isGeneral(type)) ? DEFAULT_TYPE : type.getSimpleName();
	}

	/**
	 * An enum constant with a body, or an anonymous subclass, goes by the name of what it
	 * extends.
	 */
	private static Class<?> named(Class<?> type) {
		Class<?> named = type;
		while (named.isAnonymousClass()) {
			Class<?> superclass = named.getSuperclass();
			if (superclass == null || superclass == Object.class) {
				return Object.class;
			}
			named = superclass;
		}
		return named;
	}

	private static boolean isGeneral(Class<?> type) {
		if (type.isArray() || type.isPrimitive()) {
			return true;
		}
		for (Class<?> candidate = type; candidate != null
				&& candidate != Object.class; candidate = candidate.getSuperclass()) {
			if (candidate.getName().endsWith(".jackson.databind.JsonNode")) {
				return true;
			}
		}
		return type.getName().startsWith("java.") || Map.class.isAssignableFrom(type)
				|| Collection.class.isAssignableFrom(type);
	}

}
