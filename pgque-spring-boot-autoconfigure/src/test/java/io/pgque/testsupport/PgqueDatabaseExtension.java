package io.pgque.testsupport;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;

import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestInstancePostProcessor;
import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Makes and hands out the database of {@link PgqueDatabase}.
 */
final class PgqueDatabaseExtension implements BeforeAllCallback, TestInstancePostProcessor, ParameterResolver {

	private static final Namespace NAMESPACE = Namespace.create(PgqueDatabaseExtension.class);

	@Override
	public void beforeAll(ExtensionContext context) throws IllegalAccessException {
		inject(context.getRequiredTestClass(), null, database(context));
	}

	@Override
	public void postProcessTestInstance(Object testInstance, ExtensionContext context) throws IllegalAccessException {
		inject(testInstance.getClass(), testInstance, database(context));
	}

	@Override
	public boolean supportsParameter(ParameterContext parameterContext, ExtensionContext context) {
		return parameterContext.getParameter().getType() == TestDatabase.class;
	}

	@Override
	public Object resolveParameter(ParameterContext parameterContext, ExtensionContext context) {
		return database(context);
	}

	/**
	 * The first caller is the outermost class, in whose store everything below it finds
	 * the database again; JUnit closes it at the end of that class.
	 */
	private static TestDatabase database(ExtensionContext context) {
		return context.getStore(NAMESPACE)
			.computeIfAbsent(TestDatabase.class, (key) -> create(context.getRequiredTestClass()), TestDatabase.class);
	}

	private static TestDatabase create(Class<?> testClass) {
		boolean migrated = AnnotationSupport.findAnnotation(testClass, PgqueDatabase.class)
			.map(PgqueDatabase::migrated)
			.orElse(true);
		return migrated ? TestDatabase.migrated() : TestDatabase.empty();
	}

	private static void inject(Class<?> type, Object instance, TestDatabase database) throws IllegalAccessException {
		boolean wantStatic = (instance == null);
		for (Field field : ReflectionSupport.findFields(type,
				(candidate) -> candidate.getType() == TestDatabase.class
						&& Modifier.isStatic(candidate.getModifiers()) == wantStatic
						&& !Modifier.isFinal(candidate.getModifiers()),
				HierarchyTraversalMode.TOP_DOWN)) {
			field.setAccessible(true);
			field.set(instance, database);
		}
	}

}
