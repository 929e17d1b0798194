package io.pgque.annotation;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

import io.pgque.config.MethodPgqueListenerEndpoint;
import io.pgque.config.PgqueContainerCustomizer;
import io.pgque.config.PgqueListenerBeanNames;
import io.pgque.config.PgqueListenerConfigurer;
import io.pgque.config.PgqueListenerContainerFactory;
import io.pgque.config.PgqueListenerEndpointRegistrar;
import io.pgque.config.PgqueListenerEndpointRegistry;
import io.pgque.listener.AckMode;
import io.pgque.listener.InvalidListenerException;
import io.pgque.listener.ListenerMode;
import io.pgque.listener.PgqueErrorHandler;
import io.pgque.listener.PgqueMessageFilter;
import io.pgque.listener.adapter.ListenerMethod;
import org.jspecify.annotations.Nullable;

import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.NoSuchBeanDefinitionException;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.Ordered;
import org.springframework.util.Assert;

/**
 * Registers the methods with {@link PgqueListener} of all beans.
 *
 * <p>
 * It looks at the classes of the beans when all singletons are there, so that beans which
 * are lazy or of another scope have their listeners as well: the former are created, the
 * latter are asked of their scope for every message. A bean whose class can't be told
 * before it is created gets its listeners when it is.
 *
 * @since 0.1.0
 */
public class PgqueListenerAnnotationBeanPostProcessor
		implements BeanPostProcessor, BeanFactoryAware, SmartInitializingSingleton, Ordered {

	private final Set<String> processed = ConcurrentHashMap.newKeySet();

	private @Nullable ConfigurableListableBeanFactory beanFactory;

	private @Nullable ListenerBeans beans;

	private volatile boolean allSingletonsThere;

	/**
	 * Create a post-processor.
	 */
	public PgqueListenerAnnotationBeanPostProcessor() {
	}

	@Override
	public void setBeanFactory(BeanFactory beanFactory) {
		Assert.isInstanceOf(ConfigurableListableBeanFactory.class, beanFactory);
		this.beanFactory = (ConfigurableListableBeanFactory) beanFactory;
		this.beans = new ListenerBeans(this.beanFactory);
	}

	/**
	 * Behind all proxies.
	 */
	@Override
	public int getOrder() {
		return Ordered.LOWEST_PRECEDENCE;
	}

	@Override
	public void afterSingletonsInstantiated() {
		Context context = context();
		PgqueListenerEndpointRegistrar registrar = registrar(context);
		for (String beanName : context.beanFactory().getBeanNamesForType(Object.class)) {
			Class<?> targetClass = context.beans().targetClass(beanName);
			if (targetClass != null) {
				process(context, registrar, beanName, targetClass);
			}
		}
		context.beanFactory()
			.getBeanProvider(PgqueListenerConfigurer.class)
			.orderedStream()
			.forEach((configurer) -> configurer.configurePgqueListeners(registrar));
		this.allSingletonsThere = true;
		registrar.registerContainers();
	}

	@Override
	public Object postProcessAfterInitialization(Object bean, String beanName) {
		if (this.allSingletonsThere) {
			Context context = context();
			Class<?> targetClass = context.beans().targetClass(bean);
			if (targetClass != null && !this.processed.contains(beanName) && !ScopedProxyUtils.isScopedTarget(beanName)
					&& context.beanFactory().containsBean(beanName)) {
				PgqueListenerEndpointRegistrar registrar = registrar(context);
				process(context, registrar, beanName, targetClass);
				registrar.registerContainers();
			}
		}
		return bean;
	}

	private Context context() {
		Assert.state(this.beanFactory != null && this.beans != null, "No bean factory has been set");
		return new Context(this.beanFactory, this.beans);
	}

	private static PgqueListenerEndpointRegistrar registrar(Context context) {
		PgqueListenerEndpointRegistrar registrar = new PgqueListenerEndpointRegistrar(context.beanFactory()
			.getBean(PgqueListenerBeanNames.ENDPOINT_REGISTRY, PgqueListenerEndpointRegistry.class));
		registrar.setDefaultContainerFactory(() -> defaultFactory(context, "A registered listener"));
		return registrar;
	}

	private void process(Context context, PgqueListenerEndpointRegistrar registrar, String beanName,
			Class<?> targetClass) {
		List<DeclaredListener> listeners = DeclaredListener.of(targetClass);
		if (listeners.isEmpty()) {
			context.beans().hasNone(targetClass);
			return;
		}
		if (!this.processed.add(beanName)) {
			return;
		}
		Supplier<Object> supplier = context.beans().supplier(beanName);
		for (DeclaredListener declared : listeners) {
			AnnotationValues values = new AnnotationValues(context.beanFactory(),
					ListenerMethod.describe(declared.method(), targetClass));
			ListenerMethod listener = ListenerMethod.of(supplier, declared.method(), targetClass,
					values.truth("batch", declared.annotation().batch()));
			if (context.beanFactory().isSingleton(beanName) && !this.allSingletonsThere) {
				listener.checkInvocableOn(supplier.get().getClass());
			}
			register(context, registrar, listener, values, declared);
		}
	}

	private static void register(Context context, PgqueListenerEndpointRegistrar registrar, ListenerMethod listener,
			AnnotationValues values, DeclaredListener declared) {
		PgqueListener annotation = declared.annotation();
		String description = listener.getDescription();
		String queue = values.text("queue", annotation.queue());
		if (queue == null) {
			throw new InvalidListenerException("Listener method " + description + " names no queue",
					"Set 'queue' of @PgqueListener");
		}
		MethodPgqueListenerEndpoint endpoint = new MethodPgqueListenerEndpoint(listener, queue);
		endpoint.setBeanFactory(context.beanFactory());
		endpoint.setId(values.text("id", annotation.id()));
		endpoint.setConsumer(values.text("consumer", annotation.consumer()));
		endpoint.setTypes(values.texts("types", declared.types()));
		endpoint.setAutoStartup(values.truth("autoStartup", annotation.autoStartup()));
		String replyTo = listener.getReplyTo();
		endpoint.setReplyQueue((replyTo != null) ? values.required("@SendTo", replyTo) : null);
		endpoint.setFilter(values.bean("filter", annotation.filter(), PgqueMessageFilter.class));
		endpoint.setContainerCustomizer(
				values.bean("containerCustomizer", annotation.containerCustomizer(), PgqueContainerCustomizer.class));
		endpoint.setAckMode(values.choice("ackMode", annotation.ackMode(), AckMode.class));
		endpoint.setMode(values.choice("mode", annotation.mode(), ListenerMode.class));
		endpoint.setConcurrency(values.count("concurrency", annotation.concurrency()));
		endpoint.setPartitions(values.count("partitions", annotation.partitions()));
		endpoint.setTransactional(values.truth("transactional", annotation.transactional()));
		endpoint.setErrorHandler(values.bean("errorHandler", annotation.errorHandler(), PgqueErrorHandler.class));
		registrar.registerEndpoint(endpoint, factory(context, values, annotation, description));
	}

	private static PgqueListenerContainerFactory<?> factory(Context context, AnnotationValues values,
			PgqueListener annotation, String description) {
		PgqueListenerContainerFactory<?> factory = values.bean("containerFactory", annotation.containerFactory(),
				PgqueListenerContainerFactory.class);
		if (factory != null) {
			return factory;
		}
		return defaultFactory(context, "Listener method " + description);
	}

	private static PgqueListenerContainerFactory<?> defaultFactory(Context context, String listener) {
		try {
			return context.beanFactory()
				.getBean(PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY, PgqueListenerContainerFactory.class);
		}
		catch (NoSuchBeanDefinitionException ex) {
			throw new InvalidListenerException(
					listener + " has no container factory: there is no bean '"
							+ PgqueListenerBeanNames.DEFAULT_CONTAINER_FACTORY + "'",
					"Define it as a DefaultPgqueListenerContainerFactory, or set 'containerFactory'", ex);
		}
	}

	private record Context(ConfigurableListableBeanFactory beanFactory, ListenerBeans beans) {
	}

}
