package io.pgque.boot.test;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

import org.junit.jupiter.api.extension.ExtendWith;

import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.autoconfigure.OverrideAutoConfiguration;
import org.springframework.boot.test.context.filter.annotation.TypeExcludeFilters;
import org.springframework.context.annotation.ComponentScan.Filter;
import org.springframework.core.annotation.AliasFor;
import org.springframework.core.env.Environment;
import org.springframework.test.context.BootstrapWith;
import org.springframework.test.context.junit.jupiter.SpringExtension;

/**
 * A test of listeners, with PgQue, the data source, transactions and the application's
 * migrations, but without its other components. The data source is the application's own:
 * it has to be PostgreSQL.
 *
 * <p>
 * Neither ticker nor listeners run by themselves; see {@link AutoConfigurePgque}.
 *
 * <pre class="code">
 * &#064;PgqueTest(listeners = Billing.class)
 * class BillingTests {
 *
 * 	&#064;Test
 * 	void charges(&#064;Autowired PgqueTestOperations pgque) {
 * 		pgque.send("orders", new OrderPlaced(7));
 * 		assertThat(pgque.drain("orders.billing").handled()).isEqualTo(1);
 * 	}
 *
 * }
 * </pre>
 *
 * @since 0.1.0
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Documented
@Inherited
@BootstrapWith(PgqueTestContextBootstrapper.class)
@ExtendWith(SpringExtension.class)
@OverrideAutoConfiguration(enabled = false)
@TypeExcludeFilters(PgqueTypeExcludeFilter.class)
@AutoConfigurePgque
@ImportAutoConfiguration
public @interface PgqueTest {

	/**
	 * Properties of the test, as {@code name=value}, added to the {@link Environment}.
	 * @return the properties
	 */
	String[] properties() default {};

	/**
	 * The components with listeners that are tested. Alias for {@link #listeners()}.
	 * @return the classes, none for those that {@link #includeFilters()} take
	 */
	@AliasFor("listeners")
	Class<?>[] value() default {};

	/**
	 * The components with listeners that are tested.
	 * @return the classes, none for those that {@link #includeFilters()} take
	 */
	@AliasFor("value")
	Class<?>[] listeners() default {};

	/**
	 * Whether filters for error handlers, converters and queues of the application apply.
	 * @return whether they do
	 */
	boolean useDefaultFilters() default true;

	/**
	 * Further components to take.
	 * @return the filters
	 */
	Filter[] includeFilters() default {};

	/**
	 * Components to leave out.
	 * @return the filters
	 */
	Filter[] excludeFilters() default {};

	/**
	 * Auto-configurations to leave out.
	 * @return the classes
	 */
	@AliasFor(annotation = ImportAutoConfiguration.class, attribute = "exclude")
	Class<?>[] excludeAutoConfiguration() default {};

}
