package io.pgque.annotation;

import java.lang.annotation.Annotation;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;

import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.aop.scope.ScopedObject;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.stereotype.Component;

/**
 * Finds out which class is behind a bean, without creating the bean.
 */
final class ListenerBeans {

	private static final List<Class<? extends Annotation>> CANDIDATES = List.of(PgqueListener.class,
			PgqueHandler.class);

	private final ConfigurableListableBeanFactory beanFactory;

	/**
	 * Classes without listener methods.
	 */
	private final Set<Class<?>> others = ConcurrentHashMap.newKeySet();

	ListenerBeans(ConfigurableListableBeanFactory beanFactory) {
		this.beanFactory = beanFactory;
	}

	/**
	 * Return the class that may have listener methods.
	 * @return the class behind any proxy, {@code null} when there are none for sure
	 */
	@Nullable Class<?> targetClass(String beanName) {
		if (ScopedProxyUtils.isScopedTarget(beanName)) {
			return null; // its proxy is the listener
		}
		Class<?> type = null;
		if (this.beanFactory.containsSingleton(beanName)) {
			Object bean = this.beanFactory.getSingleton(beanName);
			// The bean itself knows more than the return type of its factory method.
			if (bean != null && !(bean instanceof FactoryBean) && !(bean instanceof ScopedObject)) {
				type = AopProxyUtils.ultimateTargetClass(bean);
			}
		}
		if (type == null) {
			type = AutoProxyUtils.determineTargetClass(this.beanFactory, beanName);
			if (type != null && ScopedObject.class.isAssignableFrom(type)) {
				type = AutoProxyUtils.determineTargetClass(this.beanFactory,
						ScopedProxyUtils.getTargetBeanName(beanName));
			}
		}
		return (type != null && mayListen(type)) ? type : null;
	}

	/**
	 * Return the class of a bean that was just created.
	 */
	@Nullable Class<?> targetClass(Object bean) {
		Class<?> type = AopProxyUtils.ultimateTargetClass(bean);
		return mayListen(type) ? type : null;
	}

	private boolean mayListen(Class<?> type) {
		return !this.others.contains(type) && AnnotationUtils.isCandidateClass(type, CANDIDATES)
				&& (!type.getName().startsWith("org.springframework.")
						|| AnnotatedElementUtils.isAnnotated(type, Component.class));
	}

	void hasNone(Class<?> type) {
		this.others.add(type);
	}

	/**
	 * Return what gives the bean for each call: the same one, or what its scope says.
	 */
	Supplier<Object> supplier(String beanName) {
		return new BeanSupplier(this.beanFactory, beanName);
	}

	/**
	 * Asks the bean factory for each call, unless the bean is the same for all of them.
	 */
	private static final class BeanSupplier implements Supplier<Object> {

		private final ConfigurableListableBeanFactory beanFactory;

		private final String beanName;

		private volatile @Nullable Object singleton;

		private BeanSupplier(ConfigurableListableBeanFactory beanFactory, String beanName) {
			this.beanFactory = beanFactory;
			this.beanName = beanName;
		}

		@Override
		public Object get() {
			Object bean = this.singleton;
			if (bean == null) {
				bean = this.beanFactory.getBean(this.beanName);
				if (this.beanFactory.isSingleton(this.beanName)) {
					this.singleton = bean;
				}
			}
			return bean;
		}

	}

}
